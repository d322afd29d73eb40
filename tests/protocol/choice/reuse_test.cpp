// Memory that is used again is registered once that pays; what is never used again is copied, and what that gains or
// loses is bounded.
#include "lacuna/protocol/choice/reuse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "ReuseInVirtualTime.*");
LACUNA_TIER(test, "Reuse.*");
LACUNA_TIER(test, "ReuseInVirtualTime.*");

using layout::Layout;
using protocol::Communicator;
using protocol::Registering;
using protocol::Reuse;

TEST(Reuse, CountsWhatOneMemorysMessagesWouldHaveSaved) {
  Reuse reuse;
  const layout::Digest one{1, 2}, other{3, 4};
  int memory[2] = {};
  reuse.of(&memory[0], one, one).copied(5);
  reuse.of(&memory[0], one, one).copied(7);
  EXPECT_EQ(reuse.of(&memory[0], one, one).saved_ns(), 12);
  EXPECT_EQ(reuse.of(&memory[0], other, one).saved_ns(), 0);
  EXPECT_EQ(reuse.of(&memory[0], one, other).saved_ns(), 0);
}

TEST(Reuse, RemembersManyMemories) {
  Reuse reuse;
  constexpr std::size_t kMany = 128, kStride = 1 << 20;  // as a program's arrays lie
  const auto at = [](std::size_t i) { return reinterpret_cast<const void*>((i + 1) * kStride); };
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < kMany; ++i) reuse.of(at(i), {}, {}).copied(1);
  std::size_t remembered = 0;
  for (std::size_t i = 0; i < kMany; ++i) remembered += reuse.of(at(i), {}, {}).saved_ns() == 3 ? 1 : 0;
  EXPECT_GE(remembered, kMany * 9 / 10);
}

TEST(Reuse, PriceDoublesEachTimeItWasInVain) {
  Reuse reuse;
  int memory = 0;
  Reuse::Account& account = reuse.of(&memory, {}, {});
  for (const double counts : {1.0, 0.5, 0.25}) {
    account.copied(8);
    EXPECT_EQ(account.saved_ns(), 8 * counts);
    account.registers();
    EXPECT_EQ(account.saved_ns(), 0);
  }
  account.found();
  account.copied(8);
  EXPECT_EQ(account.saved_ns(), 8);
}

// 64 blocks of 4 KiB, from rank 0 to rank 1, each answered by an empty message; `fresh`: the sender's memory is another
// one each time.
struct Took {
  double us = 0;       // of a message, a mean of all,
  double last_us = 0;  // and of the last one
};
Took took(Registering registering, int messages, bool fresh) {
  Took found;
  const std::string wrong = in_model(2, {.registering = registering}, [&](Communicator& ranks) -> std::string {
    const Layout layout = support::value(Layout::vector(64, 4096, 8192, support::value(Layout::bytes(1))));
    const Layout none = support::value(Layout::bytes(0));
    const bool sends = ranks.rank() == 0;
    const auto span = static_cast<std::size_t>(layout.true_extent());
    std::vector<std::byte> memory(span * static_cast<std::size_t>(fresh && sends ? messages : 1), std::byte{5});
    const std::int64_t begin = ranks.context().now();
    for (int i = 0; i < messages; ++i) {
      const std::int64_t before = ranks.context().now();
      std::byte* base = memory.data() + (fresh && sends ? static_cast<std::size_t>(i) * span : 0);
      if (sends) LACUNA_END_TRY(ranks.send(base, layout, 1, 0));
      if (sends) LACUNA_END_TRY(ranks.recv(base, none, 1, 1));
      if (!sends) LACUNA_END_TRY(ranks.recv(base, layout, 0, 0));
      if (!sends) LACUNA_END_TRY(ranks.send(base, none, 0, 1));
      found.last_us = static_cast<double>(ranks.context().now() - before) / 1e3;
    }
    found.us = static_cast<double>(ranks.context().now() - begin) / 1e3 / messages;
    return {};
  });
  EXPECT_EQ(wrong, "");
  return found;
}

TEST(ReuseInVirtualTime, MemoryThatIsUsedAgainIsRegistered) {
  constexpr int kMessages = 200;
  const Took automatic = took(Registering::automatic, kMessages, false);
  const Took pinned = took(Registering::leave_pinned, kMessages, false);
  const Took copied = took(Registering::copy, kMessages, false);
  ASSERT_LT(pinned.us, copied.us);
  EXPECT_LT(automatic.last_us, 1.01 * pinned.last_us);
  EXPECT_LT(automatic.us, 1.03 * pinned.us);
}

TEST(ReuseInVirtualTime, MemoryThatIsAnotherEachTimeIsCopied) {
  constexpr int kMessages = 200;
  const Took automatic = took(Registering::automatic, kMessages, true);
  const Took copied = took(Registering::copy, kMessages, true);
  EXPECT_LT(automatic.us, 1.03 * copied.us);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
