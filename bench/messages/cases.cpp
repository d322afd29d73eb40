#include "bench/messages/cases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/guide/ai.hpp"

namespace lacuna::bench {
namespace {

using guide::Datatype;

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

Case contiguous(const MessageCase& what) {
  const Side side = side_of(Datatype::contiguous(what.payload, Datatype::basic(1)), what.payload);
  return {what.suite, what.name, what.family, side, side};
}

Case ddtbench(const MessageCase& what) {
  const CaseEntry& entry = cases()[static_cast<std::size_t>(what.number)];
  return entry.make(entry);
}

Case ai(const MessageCase& what) {
  const guide::Case transfer = guide::ai_case(what.family, what.number).value();
  return {what.suite, what.name, what.family, side_of(written(transfer.send), transfer.send_span),
          side_of(written(transfer.receive), transfer.receive_span)};
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes >= kMiB) return fmt::format("{} MiB", bytes / kMiB);
  return bytes >= kKiB ? fmt::format("{} KiB", bytes / kKiB) : fmt::format("{} B", bytes);
}

std::int64_t finer(const layout::Layout& send, const layout::Layout& receive) { return std::max(send.run_count(), receive.run_count()); }

std::vector<MessageCase> make_cases() {
  std::vector<MessageCase> all;
  for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{64}, kKiB, 8 * kKiB, 64 * kKiB, kMiB, 64 * kMiB})
    all.push_back({.suite = "contiguous", .name = bytes_text(bytes), .family = "", .payload = bytes, .blocks = 1, .make = &contiguous});
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const CaseEntry& entry = cases()[i];
    if (entry.group != "ddtbench") continue;
    const Case made = entry.make(entry);
    all.push_back({.suite = entry.group,
                   .name = entry.name,
                   .family = entry.family,
                   .payload = made.send.layout.size(),
                   .blocks = finer(made.send.layout, made.receive.layout),
                   .make = &ddtbench,
                   .number = static_cast<std::int64_t>(i)});
  }
  for (const std::int64_t most : {kMiB, 8 * kMiB}) {
    for (const guide::AiTransfer& transfer : guide::ai_transfers()) {
      const guide::Case made = guide::ai_case(std::string(transfer.name), most).value();
      // A transfer that is smaller than the cut is the same one again.
      if (std::ranges::any_of(all, [&](const MessageCase& c) { return c.suite == "ai" && c.name == made.name; })) continue;
      all.push_back({.suite = "ai",
                     .name = made.name,
                     .family = std::string(transfer.name),
                     .payload = made.send.size(),
                     .blocks = finer(made.send, made.receive),
                     .make = &ai,
                     .number = most});
    }
  }
  return all;
}

}  // namespace

const std::vector<MessageCase>& message_cases() {
  static const std::vector<MessageCase> all = make_cases();
  return all;
}

}  // namespace lacuna::bench
