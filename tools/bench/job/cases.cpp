#include "tools/bench/job/cases.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::bench {
namespace {

using corpus::Datatype;

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

std::string bytes_text(std::int64_t bytes) {
  if (bytes >= kMiB) return fmt::format("{} MiB", bytes / kMiB);
  return bytes >= kKiB ? fmt::format("{} KiB", bytes / kKiB) : fmt::format("{} B", bytes);
}

}  // namespace

std::int64_t finer(const layout::Layout& send, const layout::Layout& receive) { return std::max(send.run_count(), receive.run_count()); }

MessageCase contiguous_case(std::int64_t bytes) {
  return {.suite = "contiguous", .name = bytes_text(bytes), .family = "", .payload = bytes, .blocks = 1, .make = &contiguous};
}

std::vector<MessageCase> ddtbench_cases() {
  std::vector<MessageCase> all;
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
  return all;
}

}  // namespace lacuna::bench
