// A communicator whose peer lies: ranks in one thread, moved on by turns, and a channel that a test can speak through.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/stream/stream.hpp"
#include "tests/support/channel.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"

namespace lacuna::test {

/// Between the hostile rank and its victim. Without a seed it changes nothing.
class Tap final : public support::AroundChannel {
 public:
  /// `rarity`: one head in so many is tampered with.
  Tap(std::unique_ptr<protocol::Channel> inside, std::uint64_t seed, int rarity)
      : AroundChannel(std::move(inside)), random_(seed), rarity_(rarity), scratch_(protocol::kMostPayload) {}

  /// Sends what a test makes up.
  void say(protocol::Head head, std::span<const std::byte> payload = {});
  /// The rings that the victim named, and those that this end did. Ranks are in one process: they are memory of this
  /// one.
  [[nodiscard]] const std::vector<protocol::RingDescriptor>& victims_rings() const { return theirs_; }
  [[nodiscard]] const std::vector<protocol::RingDescriptor>& own_rings() const { return own_; }
  /// What the victim said last of a kind.
  [[nodiscard]] const protocol::Head& last(protocol::HeadKind kind) const { return said_[static_cast<std::uint8_t>(kind)]; }
  /// Counters and contents of rings become anything, now and then.
  void scribble();

  std::byte* claim(std::size_t bytes) override;
  void commit(protocol::Head& head) override;
  base::Result<bool> next(Arrival& arrival) override;

 private:
  std::uint64_t number();
  void tamper(protocol::Head& head, std::vector<std::byte>& payload);
  protocol::Head made_up(std::vector<std::byte>& payload);
  void make_up_body(protocol::Head& head, std::vector<std::byte>& payload);
  void forward(const protocol::Head& head, std::span<const std::byte> payload);

  support::Random random_;
  int rarity_;  // 0: honest
  std::vector<std::byte> scratch_;
  std::vector<protocol::RingDescriptor> own_, theirs_;
  std::array<protocol::Head, 256> said_{};
  std::optional<std::pair<protocol::Head, std::vector<std::byte>>> held_back_;
};

/// Ranks of one process, all in the thread of the test. Rank 0 is the victim, rank 1 is hostile to it and honest to
/// others.
class Den {
 public:
  Den(const Setting& setting, std::uint64_t seed, int rarity);
  ~Den();
  Den(const Den&) = delete;
  Den& operator=(const Den&) = delete;

  [[nodiscard]] protocol::Communicator& rank(int i) { return *ranks_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] nic::Context& context(int i) { return *contexts_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] Tap& tap() { return *tap_; }
  /// All ranks by turns, until `ready` says true; false if it does not within many turns in which nothing moves.
  bool until(const std::function<bool()>& ready, int idle_turns = 400);
  /// The victim alone.
  void victim_moves(int turns = 200);

 private:
  std::vector<std::unique_ptr<nic::Context>> contexts_;
  std::vector<std::unique_ptr<protocol::Communicator>> ranks_;
  Tap* tap_ = nullptr;  // the hostile communicator's
};

/// Memory for a layout, with guards around it.
struct Guarded {
  std::vector<std::byte> bytes;
  std::vector<bool> named;  ///< by the layout
  std::int64_t origin = 0;
  layout::Layout layout;

  Guarded(layout::Layout what, std::uint64_t seed);
  [[nodiscard]] std::byte* base() { return bytes.data() + origin; }
  /// Whether what the layout does not name is as it was.
  [[nodiscard]] bool intact() const;
  [[nodiscard]] bool untouched() const;

 private:
  [[nodiscard]] std::byte pattern(std::size_t i) const { return static_cast<std::byte>((i + seed_) * 0x9e3779b97f4a7c15 >> 56); }
  std::uint64_t seed_;
};

/// Looks at what has begun, each with a `rank` and a `request` that is null once it is over; whether all are. `wrong`
/// gets an error that `tolerable` does not name, behind `what`.
template <class Begun>
bool all_ended(Den& den, const std::vector<std::unique_ptr<Begun>>& begun, bool (*tolerable)(base::Code), std::string_view what,
               std::string& wrong) {
  bool all = true;
  for (const auto& one : begun) {
    if (one->request == nullptr) continue;
    const auto result = den.rank(one->rank).test(one->request);
    if (!result) {
      all = false;
      continue;
    }
    one->request = nullptr;
    if (!*result && !tolerable(result->error().code)) wrong = std::string(what) + ": " + result->error().text();
  }
  return all;
}

}  // namespace lacuna::test
