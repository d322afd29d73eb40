// A channel over sends and receives: what it carries arrives as it was, and it asks for completions only where the peer
// says nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "lacuna/protocol/channel/channel.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Result;
using protocol::Channel;
using protocol::Head;

// Counts the sends that ask for a completion.
class CountingPair final : public nic::QueuePair {
 public:
  CountingPair(std::unique_ptr<nic::QueuePair> real, int& asked) : real_(std::move(real)), asked_(asked) {}
  [[nodiscard]] std::uint32_t number() const override { return real_->number(); }
  [[nodiscard]] nic::Path path() const override { return real_->path(); }
  [[nodiscard]] const nic::Limits& limits() const override { return real_->limits(); }
  Result<void> post_chain(std::span<const nic::SendRequest> chain) override {
    for (const nic::SendRequest& request : chain) asked_ += request.signaled ? 1 : 0;
    return real_->post_chain(chain);
  }
  Result<void> post_recv(const nic::RecvRequest& request) override { return real_->post_recv(request); }
  [[nodiscard]] const base::Error* fault() const override { return real_->fault(); }

 private:
  std::unique_ptr<nic::QueuePair> real_;
  int& asked_;
};

class CountingContext final : public nic::Context {
 public:
  explicit CountingContext(std::unique_ptr<nic::Context> real) : real_(std::move(real)) {}
  int asked = 0;

  [[nodiscard]] std::string_view nic_name() const override { return real_->nic_name(); }
  [[nodiscard]] const nic::Limits& limits() const override { return real_->limits(); }
  Result<nic::Buffer> allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  Result<nic::Region> register_memory(std::span<std::byte> bytes, nic::Rights rights, nic::MemoryKind kind) override {
    return real_->register_memory(bytes, rights, kind);
  }
  Result<nic::IndirectKey> create_indirect_key(int entries) override { return real_->create_indirect_key(entries); }
  Result<std::unique_ptr<nic::CompletionQueue>> create_completion_queue(int entries) override {
    return real_->create_completion_queue(entries);
  }
  Result<std::unique_ptr<nic::QueuePair>> connect(nic::Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                  const nic::QueuePairOptions& options) override {
    return std::make_unique<CountingPair>(LACUNA_TRY(real_->connect(bootstrap, queue, options)), asked);
  }
  int poll(nic::CompletionQueue& queue, std::span<nic::Completion> completions) override { return real_->poll(queue, completions); }
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
            copy::Caching caching) override {
    real_->pack(layout, base, position, length, out, caching);
  }
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
              copy::Caching caching) override {
    real_->unpack(layout, base, position, length, in, caching);
  }
  Result<void> transpack(const layout::Layout& src, const std::byte* from, const layout::Layout& dst, std::byte* to) override {
    return real_->transpack(src, from, dst, to);
  }
  std::uint64_t load_flag(const std::uint64_t* flag) override { return real_->load_flag(flag); }
  [[nodiscard]] std::int64_t now() override { return real_->now(); }
  Result<void> wait(std::int64_t deadline) override { return real_->wait(deadline); }
  [[nodiscard]] std::int64_t busy_ns() override { return real_->busy_ns(); }

 protected:
  void free(std::span<std::byte> /*bytes*/) override {}
  void deregister(std::uint32_t /*lkey*/) override {}
  void destroy_indirect_key(std::uint32_t /*key*/) override {}

 private:
  std::unique_ptr<nic::Context> real_;
};

struct End {
  std::unique_ptr<CountingContext> context;
  std::unique_ptr<Channel> channel;
  std::uint32_t sent = 0, came = 0;

  static Result<End> make(nic::Bootstrap& bootstrap) {
    End made;
    made.context = std::make_unique<CountingContext>(LACUNA_TRY(nic::open("local")));
    made.channel = LACUNA_TRY(protocol::make_queue_channel(*made.context, bootstrap, nic::Path::slots));
    made.context->asked = 0;
    return made;
  }
  static std::byte content(std::uint32_t number) { return static_cast<std::byte>(number * 2654435761U >> 24); }
  static std::uint32_t length(std::uint32_t number) { return number * 7919 % 5000; }

  // Whether there was room.
  bool send() {
    const std::uint32_t bytes = length(sent);
    std::byte* to = channel->claim(bytes);
    if (to == nullptr) return false;
    std::memset(to, std::to_integer<int>(content(sent)), bytes);
    Head head{.kind = protocol::HeadKind::eager, .number = sent++, .payload = bytes};
    channel->commit(head);
    return true;
  }
  // Whether one came; an error where it is not the next one, as it was sent.
  Result<bool> take() {
    Channel::Arrival arrival;
    if (!LACUNA_TRY(channel->next(arrival))) return false;
    const Head& head = arrival.head;
    bool same = head.number == came && head.payload == length(came);
    for (std::uint32_t i = 0; same && i < head.payload; ++i) same = arrival.payload[i] == content(came);
    if (!same) return base::fail(base::Code::malformed, "message " + std::to_string(came));
    ++came;
    channel->pop();
    return true;
  }
  // Sends and takes until so many have gone and come, at both ends: what this one has sent may need its polls.
  template <class MaySend>
  Result<void> run(std::uint32_t count, std::atomic<int>& ended, const MaySend& may_send) {
    const std::int64_t deadline = context->now() + kPatience;
    for (bool done = false; ended < 2;) {
      if (!done && sent == count && came == count) done = ++ended > 0;
      bool moved = sent < count && may_send() && send();
      moved = LACUNA_TRY(take()) || moved;
      if (const base::Error* fault = channel->fault(); fault != nullptr && !done) return std::unexpected(*fault);
      if (!moved) LACUNA_TRY(context->wait(deadline));
    }
    return {};
  }
};

constexpr std::uint32_t kMessages = 2000;

// One message is under way at a time: each tells that the one before has been taken.
TEST(QueueChannel, AsksRarelyWherePeersAnswer) {
  std::atomic<int> ended = 0;
  const auto ping_pong = [&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    End end = LACUNA_END_TRY(End::make(bootstrap));
    LACUNA_END_TRY(end.run(kMessages, ended, [&] { return rank == 0 ? end.sent == end.came : end.sent < end.came; }));
    LACUNA_END_EXPECT(end.context->asked <= static_cast<int>(kMessages / 32));
    return {};
  };
  EXPECT_EQ(in_two_threads(ping_pong), "");
}

// Both ends send what they can, in bursts by chance, and both get all of it.
TEST(QueueChannel, CarriesBurstsOfBothEnds) {
  std::atomic<int> ended = 0;
  const auto bursts = [&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    End end = LACUNA_END_TRY(End::make(bootstrap));
    support::Random random(static_cast<std::uint64_t>(rank) + 5);
    bool sends = true;
    LACUNA_END_TRY(end.run(kMessages, ended, [&] { return sends = random.one_in(50) ? !sends : sends; }));
    LACUNA_END_EXPECT(end.context->asked <= static_cast<int>(kMessages / 4));
    return {};
  };
  EXPECT_EQ(in_two_threads(bursts), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
