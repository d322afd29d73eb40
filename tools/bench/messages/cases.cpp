#include "tools/bench/messages/cases.hpp"

#include <algorithm>

#include "tools/corpus/ai.hpp"

namespace lacuna::bench {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

Case ai(const MessageCase& what) {
  const corpus::Case transfer = corpus::ai_case(what.family, what.number).value();
  return {what.suite, what.name, what.family, side_of(written(transfer.send), transfer.send_span),
          side_of(written(transfer.receive), transfer.receive_span)};
}

std::vector<MessageCase> make_cases() {
  std::vector<MessageCase> all;
  for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{64}, kKiB, 8 * kKiB, 64 * kKiB, kMiB, 64 * kMiB})
    all.push_back(contiguous_case(bytes));
  std::ranges::move(ddtbench_cases(), std::back_inserter(all));
  for (const std::int64_t most : {kMiB, 8 * kMiB}) {
    for (const corpus::AiTransfer& transfer : corpus::ai_transfers()) {
      const corpus::Case made = corpus::ai_case(std::string(transfer.name), most).value();
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
