// Lists of descriptors as layouts: what the parts of two lists move is what the lists say, strides are found again, and
// lists that are wrong are refused.
#include <gtest/gtest.h>

#include <map>

#include "lacuna/nixl/nests.hpp"
#include "lacuna/nixl/parts.hpp"
#include "tests/nixl/ends.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using nixl::halves_of;
using nixl::LocalMemory;
using nixl::Part;
using nixl::parts_of;
using nixl::RemoteMemory;

// Registrations at addresses that nothing looks at.
constexpr std::uint64_t kHere = 1 << 20, kThere = 1 << 30;
constexpr std::int64_t kBytes = 1 << 20;
LocalMemory here() { return {reinterpret_cast<std::byte*>(kHere), kBytes, {}}; }

nixlMetaDesc piece(std::uint64_t addr, std::size_t length, nixlBackendMD* memory) {
  nixlMetaDesc made;
  made.addr = addr;
  made.len = length;
  made.devId = 0;
  made.metadataP = memory;
  return made;
}

// Which byte goes where.
using Moves = std::map<std::uint64_t, std::uint64_t>;
Moves moves_of(const std::vector<Part>& parts) {
  Moves moves;
  for (const Part& part : parts) {
    auto pieces = support::value(layout::Intersection::of(part.ours, part.theirs));
    while (!pieces.done()) {
      const layout::Piece one = pieces.next();
      for (std::int64_t i = 0; i < one.length; ++i)
        moves[reinterpret_cast<std::uint64_t>(part.local) + static_cast<std::uint64_t>(one.src + i)] =
            part.base + static_cast<std::uint64_t>(part.offset + one.dst + i);
    }
  }
  return moves;
}
Moves moves_of(const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote) {
  Moves moves;
  for (std::size_t i = 0; i < local.descs.size(); ++i)
    for (std::size_t byte = 0; byte < local.descs[i].len; ++byte) moves[local.descs[i].addr + byte] = remote.descs[i].addr + byte;
  return moves;
}

TEST(NixlParts, MoveWhatTheListsSay) {
  LocalMemory own = here();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    support::Random random(seed);
    std::vector<std::unique_ptr<RemoteMemory>> theirs;
    for (std::int64_t i = random.between(1, 3); i > 0; --i)
      theirs.push_back(std::make_unique<RemoteMemory>(kThere + static_cast<std::uint64_t>(i * kBytes), kBytes, nixl::Token{}));
    const std::int64_t count = random.between(1, 60);
    std::vector<std::int64_t> lengths;
    const std::int64_t alike = random.between(1, 20);
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(seed % 2 == 0 ? alike : random.between(0, 20));
    const auto ours = random_extents(random, count, count * random.between(20, 40), lengths);
    const auto places = random_extents(random, count, count * random.between(20, 40), lengths);
    nixl_meta_dlist_t local, remote;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      RemoteMemory& memory = *theirs[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(theirs.size())))];
      local.descs.push_back(piece(kHere + static_cast<std::uint64_t>(ours[i].offset), static_cast<std::size_t>(lengths[i]), &own));
      remote.descs.push_back(
          piece(memory.base + static_cast<std::uint64_t>(places[i].offset), static_cast<std::size_t>(lengths[i]), &memory));
    }
    const auto parts = support::value(parts_of(local, remote));
    EXPECT_LE(parts.size(), theirs.size());
    EXPECT_EQ(moves_of(parts), moves_of(local, remote));
    std::vector<Part> cut;
    for (const Part& part : parts) {
      if (part.ours.size() < 2) {
        cut.push_back(part);
        continue;
      }
      auto [first, second] = support::value(halves_of(part));
      cut.push_back(std::move(first));
      cut.push_back(std::move(second));
    }
    EXPECT_EQ(moves_of(cut), moves_of(local, remote));
  }
}

// The published case: head slices, 128 strides of 10 840 pieces each.
TEST(NixlParts, FindStridesAgain) {
  constexpr std::int64_t kLayers = 16, kTokens = 1000, kHead = 64, kRow = 512, kGap = 1024;
  LocalMemory own{reinterpret_cast<std::byte*>(kHere), 1 << 30, {}};
  RemoteMemory theirs{kThere, 1 << 30, {}};
  nixl_meta_dlist_t local, remote;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    for (std::int64_t token = 0; token < kTokens; ++token) {
      local.descs.push_back(piece(kHere + static_cast<std::uint64_t>(layer * kTokens * kRow + token * kRow), kHead, &own));
      remote.descs.push_back(
          piece(kThere + static_cast<std::uint64_t>(layer * kTokens * 2 * kHead + layer * kGap + token * 2 * kHead), kHead, &theirs));
    }
  }
  const auto parts = support::value(parts_of(local, remote));
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].ours.run_count(), kLayers * kTokens);
  EXPECT_LE(layout::encode(parts[0].ours).size(), 64U);
  EXPECT_LE(layout::encode(parts[0].theirs).size(), 64U);
}

// Nests of one to four strides, some disturbed: the layout is that of the list, whatever the short cut sees in it.
TEST(NixlParts, ARegularListIsTheListsLayout) {
  int nests = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    support::Random random(seed);
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t level = random.between(1, 4); level > 0; --level) {
      const std::int64_t count = random.between(1, 12), stride = random.between(-3000, 3000);
      std::vector<std::int64_t> next;
      for (std::int64_t i = 0; i < count; ++i)
        for (const std::int64_t offset : offsets) next.push_back(offset + i * stride);
      offsets = std::move(next);
    }
    for (std::int64_t i = random.one_in(2) ? 0 : random.between(1, 3); i > 0; --i)
      offsets[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(offsets.size())))] += random.between(-5, 5);
    const std::int64_t first = offsets[0], length = random.between(1, 40);
    for (std::int64_t& offset : offsets) offset -= first;
    const Layout made = support::value(nixl::layout_of_pieces(length, offsets));
    const Layout listed = support::value(Layout::hindexed_block(length, offsets, support::value(Layout::bytes(1))));
    EXPECT_EQ(made.describe(), listed.describe());
    EXPECT_TRUE(made.same_runs(listed));
    EXPECT_EQ(made.true_lower_bound(), listed.true_lower_bound());
    nests += offsets.size() > 100 ? 1 : 0;
  }
  EXPECT_GT(nests, 100);
}

TEST(NixlParts, NPiecesMayBeMOnTheOtherSide) {
  LocalMemory own = here();
  RemoteMemory theirs{kThere, kBytes, {}};
  nixl_meta_dlist_t local, remote;
  for (std::uint64_t i = 0; i < 100; ++i) {
    local.descs.push_back(piece(kHere + i * 10, 10, &own));       // they touch: one run
    remote.descs.push_back(piece(kThere + i * 30, 10, &theirs));  // they do not
  }
  const auto parts = support::value(parts_of(local, remote));
  EXPECT_EQ(parts.at(0).ours.run_count(), 1);
  EXPECT_EQ(parts.at(0).theirs.run_count(), 100);
}

// Two registrations of the peer with memory in common, or two that are read into one place here: every pair of pieces
// by hand.
TEST(NixlParts, DestinationsOfSeveralRegistrationsAreEachWrittenOnce) {
  int overlapping = 0;
  constexpr std::uint64_t kRounds = 400;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    support::Random random(seed);
    LocalMemory own = here();
    std::vector<std::unique_ptr<RemoteMemory>> theirs;
    for (std::int64_t i = random.between(2, 4); i > 0; --i)
      theirs.push_back(std::make_unique<RemoteMemory>(kThere + static_cast<std::uint64_t>(random.below(3000)), 10'000, nixl::Token{}));
    const bool puts = random.one_in(2);
    nixl_meta_dlist_t local, remote;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> written;
    for (std::int64_t i = random.between(2, 25); i > 0; --i) {
      RemoteMemory& memory = *theirs[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(theirs.size())))];
      const auto length = static_cast<std::uint64_t>(random.between(0, 30));
      const std::uint64_t ours = kHere + static_cast<std::uint64_t>(random.below(9000));
      const std::uint64_t there = memory.base + static_cast<std::uint64_t>(random.below(9000));
      local.descs.push_back(piece(ours, length, &own));
      remote.descs.push_back(piece(there, length, &memory));
      written.emplace_back(puts ? there : ours, length);
    }
    bool twice = false;
    for (std::size_t i = 0; i < written.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        twice = twice || (written[i].first < written[j].first + written[j].second &&
                          written[j].first < written[i].first + written[i].second && written[i].second > 0 && written[j].second > 0);
    overlapping += twice ? 1 : 0;
    const auto checked = nixl::check_destinations(support::value(parts_of(local, remote)), puts);
    ASSERT_EQ(checked.has_value(), !twice);
    EXPECT_TRUE(checked || checked.error().code == base::Code::invalid_argument);
  }
  EXPECT_GT(overlapping, 50);
  EXPECT_LT(overlapping, static_cast<int>(kRounds) - 50);
}

base::Code refused(const nixlMetaDesc& local, const nixlMetaDesc& remote) {
  nixl_meta_dlist_t ours, theirs;
  ours.descs = {local};
  theirs.descs = {remote};
  const auto parts = parts_of(ours, theirs);
  return parts ? base::Code::io : parts.error().code;
}

TEST(NixlParts, AreWithinWhatIsRegistered) {
  LocalMemory own = here();
  RemoteMemory theirs{kThere, kBytes, {}};
  constexpr auto kEnd = static_cast<std::uint64_t>(kBytes);
  EXPECT_EQ(refused(piece(kHere + kEnd - 4, 5, &own), piece(kThere, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere - 1, 5, &own), piece(kThere, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, 5, &own), piece(kThere + kEnd - 4, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, 5, &own), piece(kThere - 1, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(UINT64_MAX, 5, &own), piece(kThere, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, SIZE_MAX, &own), piece(kThere, SIZE_MAX, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, 5, &own), piece(kThere, 6, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, 5, nullptr), piece(kThere, 5, &theirs)), base::Code::invalid_argument);
  EXPECT_EQ(refused(piece(kHere, 5, &own), piece(kThere, 5, &own)), base::Code::invalid_argument);
  nixl_meta_dlist_t one, none;
  one.descs = {piece(kHere, 5, &own)};
  EXPECT_EQ(parts_of(one, none).error().code, base::Code::invalid_argument);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
