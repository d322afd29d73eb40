#include "tools/measure/message_memory.hpp"

#include <algorithm>
#include <array>

namespace lacuna::measure {
namespace {

// Rank 1's answer.
struct MessageVerdict {
  std::array<char, 256> wrong{};
};

// What each end sends is known to the other by the turn.
constexpr std::uint64_t seed_of(std::int64_t turn, int rank) { return static_cast<std::uint64_t>(2 * turn + rank); }

}  // namespace

MessageMemory::MessageMemory(const Layout& message, std::int64_t pitch, const Layout& all)
    : message_(message),
      all_(all),
      pitch_(pitch),
      windows_(all_, all_.true_extent()),
      send_(static_cast<std::size_t>(all_.true_extent() + 2 * kGuard)),
      receive_(send_.size()) {}

Result<MessageMemory> MessageMemory::of(const Layout& message, std::int64_t count) {
  const std::int64_t pitch = message.true_extent() + kSharedGuard;
  return MessageMemory(message, pitch, LACUNA_TRY(Layout::hvector(count, 1, pitch, message)));
}

void MessageMemory::begin(const protocol::Communicator& ranks, std::int64_t turn) {
  write_stream(all_, send_base(), stream_of(seed_of(turn, ranks.rank()), all_.size()));
  lay_pattern(receive_);
  poison(all_, receive_base());
}

Result<std::string> MessageMemory::wrong(protocol::Communicator& ranks, std::int64_t turn) {
  std::string here = examine(all_, receive_base(), windows_, stream_of(seed_of(turn, 1 - ranks.rank()), all_.size()));
  MessageVerdict verdict;
  if (ranks.rank() == 1) {
    std::ranges::copy(here.substr(0, verdict.wrong.size() - 1), verdict.wrong.begin());
    LACUNA_TRY(ranks.send(&verdict, layout_of_value<MessageVerdict>(), 0, kWordTag));
    return here;
  }
  LACUNA_TRY(ranks.recv(&verdict, layout_of_value<MessageVerdict>(), 1, kWordTag));
  verdict.wrong.back() = '\0';
  return here.empty() ? std::string(verdict.wrong.data()) : std::move(here);
}

}  // namespace lacuna::measure
