// A rank that is about to sleep looks whether a peer is gone. That look may bring messages, and the round after it the
// last completions of a connection that has ended. Nothing wakes the rank for either: so it looks at both first.
#include <gtest/gtest.h>

#include "tests/support/channel.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using base::Result;
using protocol::Channel;
using protocol::Head;

// What has come is seen only behind a look for a fault, which some request of the channel has made likely.
class Late final : public support::AroundChannel {
 public:
  using AroundChannel::AroundChannel;
  Result<bool> next(Arrival& arrival) override {
    const bool came = LACUNA_TRY(AroundChannel::next(arrival));
    if (came && shown_) return true;
    arrival.failed = came && !has_come_;
    has_come_ = came;
    return false;
  }
  void pop() override {
    shown_ = has_come_ = false;
    AroundChannel::pop();
  }
  const base::Error* fault() override {
    shown_ = has_come_;
    return has_come_ ? nullptr : AroundChannel::fault();
  }

 private:
  bool has_come_ = false, shown_ = false;
};

// Its connection has ended. Some of its requests fail before a look finds that, others while a first look finds
// nothing, and then it is there to be found.
class Ending final : public support::AroundChannel {
 public:
  using AroundChannel::AroundChannel;
  Result<bool> next(Arrival& arrival) override {
    const bool came = LACUNA_TRY(AroundChannel::next(arrival));
    if (came) return true;
    arrival.failed = failed_ <= looks_ && failed_ < 2;
    failed_ += arrival.failed ? 1 : 0;
    return false;
  }
  const base::Error* fault() override {
    if (failed_ == 0) return AroundChannel::fault();
    return looks_++ == 0 ? nullptr : &ended_;
  }

 private:
  int failed_ = 0, looks_ = 0;
  base::Error ended_{base::Code::peer_lost, "the connection has ended"};
};

// A message there and one back, each of which finds its receiver asleep. The simulated world says so if all ranks sleep
// for ever.
TEST(Idle, TakesWhatALookForFaultsHasFound) {
  protocol::Options options;
  options.wrap_channel = [](std::unique_ptr<Channel> channel) { return std::make_unique<Late>(std::move(channel)); };
  const Program program = [](protocol::Communicator& ranks) -> std::string {
    const layout::Layout layout = support::value(layout::Layout::bytes(100));
    std::vector<std::byte> out(100, std::byte{7}), in(100);
    const int other = 1 - ranks.rank();
    for (int turn = 0; turn < 2; ++turn) {
      const bool sends = turn == ranks.rank();
      protocol::Request* const request =
          sends ? LACUNA_END_TRY(ranks.isend(out.data(), layout, other, 3)) : LACUNA_END_TRY(ranks.irecv(in.data(), layout, other, 3));
      LACUNA_END_TRY(ranks.wait(request));
    }
    LACUNA_END_EXPECT(in == out);
    return {};
  };
  EXPECT_EQ(in_model(2, options, program), "");
}

// Both ranks wait for a message that never comes.
TEST(Idle, FindsAnEndWhoseLastWordsCameMeanwhile) {
  protocol::Options options;
  options.wrap_channel = [](std::unique_ptr<Channel> channel) { return std::make_unique<Ending>(std::move(channel)); };
  const Program program = [](protocol::Communicator& ranks) -> std::string {
    const layout::Layout layout = support::value(layout::Layout::bytes(100));
    std::vector<std::byte> in(100);
    protocol::Request* const request = LACUNA_END_TRY(ranks.irecv(in.data(), layout, 1 - ranks.rank(), 3));
    const Result<protocol::Status> ended = ranks.wait(request);
    LACUNA_END_EXPECT(!ended && ended.error().message.contains("the connection has ended"));
    return {};
  };
  EXPECT_EQ(in_model(2, options, program), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
