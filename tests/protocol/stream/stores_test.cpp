// Whatever a trial tries, the bytes are the layout's.
#include "lacuna/protocol/stream/stores.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/random.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Stores.*");

using layout::Layout;

// Pieces of messages as streams make them, and messages that are a piece each: trials begin in one and end in another.
TEST(Stores, PackWhatTheyAreGiven) {
  const std::unique_ptr<nic::Context> context = support::value(nic::open("local"));
  const std::vector<Layout> layouts{support::value(Layout::bytes(40'000)),
                                    support::value(Layout::hvector(5000, 1, 13, support::value(Layout::bytes(8)))),
                                    support::value(Layout::hvector(40, 1, 1500, support::value(Layout::bytes(1000))))};
  std::vector<std::byte> memory(70'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 0x9e3779b97f4a7c15 >> 56);
  protocol::Stores stores;
  support::Random random(1);
  std::vector<std::byte> packed(40'000), expected(40'000);
  for (int message = 0; message < 1500; ++message) {
    const Layout& layout = random.pick(layouts);
    const std::int64_t piece = random.pick(std::vector<std::int64_t>{100, 2048, 4096, 8192, 40'000});
    copy::reference::pack(layout, memory.data(), 0, layout.size(), expected.data());
    std::ranges::fill(packed, std::byte{});
    for (std::int64_t at = 0; at < layout.size(); at += piece)
      stores.pack(*context, layout, memory.data(), at, std::min(piece, layout.size() - at), packed.data() + at);
    ASSERT_TRUE(packed == expected) << "message " << message << " in pieces of " << piece;
  }
}

// Nanoseconds of a line as trials found them on one virtual machine: among messages that come one after the other, and
// among other work, which leaves no window in the caches; near CPUs, and CPUs without a common cache.
TEST(Stores, PassTheCachesByOnlyWhereThatGainsMoreThanATrialErrs) {
  struct Found {
    double kept, passed;
    bool pays;
  };
  constexpr std::array found{Found{1.9, 5.3, false}, Found{5.8, 6.1, false}, Found{7.9, 5.3, false},
                             Found{7.2, 3.1, false}, Found{27, 2, true},     Found{30, 6.7, true}};
  for (const std::int64_t bytes : {2048, 4096, 16384, 65536}) {
    const double lines = static_cast<double>(bytes) / 64;
    for (const Found& of : found)
      EXPECT_EQ(protocol::Stores::passing_pays(of.kept * lines, of.passed * lines, bytes), of.pays) << of.kept << " " << of.passed;
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
