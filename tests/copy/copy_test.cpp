// pack, unpack and transpack move exactly the bytes that the naive walk names, fragment by fragment in any order, and
// leave every other byte alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/copy/copy.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Copy.*");

using layout::Layout;
using support::Random;
using support::Sample;
using support::value;
using Bytes = std::vector<std::byte>;
using List = std::vector<std::int64_t>;

void fill(Bytes& bytes, Random& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 56);
}

// Memory for a typemap: from its lowest to its highest byte and not one more, so that a sanitizer sees each access
// beyond, or with guard zones around.
class Memory {
 public:
  Memory(const naive::Typemap& map, std::int64_t guard, Random& random)
      : bytes(static_cast<std::size_t>(map.true_extent() + 2 * guard)), origin_(guard - map.true_lb()) {
    fill(bytes, random);
  }
  std::byte* base() { return bytes.data() + origin_; }
  std::byte& at(std::int64_t offset) { return bytes.at(static_cast<std::size_t>(offset + origin_)); }

  Bytes bytes;

 private:
  std::int64_t origin_;
};

struct Fragment {
  std::int64_t position;
  std::int64_t length;
};

// [0, size) cut at random places, shuffled; empty fragments among them.
std::vector<Fragment> fragments(std::int64_t size, Random& random) {
  List cuts = {0, size};
  for (std::int64_t i = random.below(12); i > 0; --i) cuts.push_back(random.between(0, size));
  std::ranges::sort(cuts);
  std::vector<Fragment> out;
  for (std::size_t i = 1; i < cuts.size(); ++i) out.push_back({cuts[i - 1], cuts[i] - cuts[i - 1]});
  random.shuffle(out);
  return out;
}

using Pack = void (*)(const Layout&, const std::byte*, std::int64_t, std::int64_t, std::byte*);
using Unpack = void (*)(const Layout&, std::byte*, std::int64_t, std::int64_t, const std::byte*);
using Transpack = base::Result<void> (*)(const Layout&, const std::byte*, const Layout&, std::byte*);

struct Engine {
  const char* name;
  Pack pack;
  Unpack unpack;
  Transpack transpack;
};
template <copy::Caching kCaching>
void pack_so(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  copy::pack(layout, base, position, length, out, kCaching);
}
template <copy::Caching kCaching>
void unpack_so(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  copy::unpack(layout, base, position, length, in, kCaching);
}

constexpr Engine kEngines[] = {{"fast", pack_so<copy::Caching::asked>, unpack_so<copy::Caching::asked>, copy::transpack},
                               {"kept", pack_so<copy::Caching::kept>, unpack_so<copy::Caching::kept>, copy::transpack},
                               {"passed", pack_so<copy::Caching::passed>, unpack_so<copy::Caching::passed>, copy::transpack},
                               {"reference", copy::reference::pack, copy::reference::unpack, copy::reference::transpack}};

void check_pack(const Engine& engine, const Layout& layout, const naive::Typemap& map, Random& random, const std::string& recipe) {
  Memory memory(map, 0, random);
  Bytes expected;
  for (const std::int64_t address : map.addresses()) expected.push_back(memory.at(address));
  Bytes stream(expected.size());
  for (const Fragment& f : fragments(layout.size(), random)) {
    Bytes piece(static_cast<std::size_t>(f.length));
    engine.pack(layout, memory.base(), f.position, f.length, piece.data());
    std::ranges::copy(piece, stream.begin() + f.position);
  }
  ASSERT_EQ(stream, expected) << engine.name << ": " << recipe;
}

void check_unpack(const Engine& engine, const Layout& layout, const naive::Typemap& map, Random& random, const std::string& recipe) {
  Memory memory(map, random.one_in(2) ? 0 : 64, random);
  Bytes stream(static_cast<std::size_t>(layout.size()));
  fill(stream, random);
  Memory expected = memory;
  std::size_t next = 0;
  for (const std::int64_t address : map.addresses()) expected.at(address) = stream[next++];
  for (const Fragment& f : fragments(layout.size(), random)) {
    const Bytes piece(stream.begin() + f.position, stream.begin() + f.position + f.length);
    engine.unpack(layout, memory.base(), f.position, f.length, piece.data());
  }
  ASSERT_EQ(memory.bytes, expected.bytes) << engine.name << ": " << recipe;
}

void check_transpack(const Engine& engine, const Sample& src, const Sample& dst, Random& random) {
  Memory from(src.typemap, 0, random);
  Memory to(dst.typemap, random.one_in(2) ? 0 : 64, random);
  Memory expected = to;
  const List source = src.typemap.addresses();
  const List target = dst.typemap.addresses();
  for (std::size_t i = 0; i < source.size(); ++i) expected.at(target[i]) = from.at(source[i]);
  const Bytes before = from.bytes;
  ASSERT_TRUE(engine.transpack(src.layout, from.base(), dst.layout, to.base())) << src.recipe << "\n  to " << dst.recipe;
  ASSERT_EQ(to.bytes, expected.bytes) << engine.name << ": " << src.recipe << "\n  to " << dst.recipe;
  ASSERT_EQ(from.bytes, before);
}

TEST(Copy, PackEqualsTheNaiveWalk) {
  Random random(71);
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = support::random_layout(random);
    for (const Engine& engine : kEngines) check_pack(engine, sample.layout, sample.typemap, random, sample.recipe);
    if (HasFatalFailure()) return;
  }
}

TEST(Copy, UnpackEqualsTheNaiveWalkAndTouchesNothingElse) {
  Random random(72);
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = support::random_receive_layout(random);
    for (const Engine& engine : kEngines) check_unpack(engine, sample.layout, sample.typemap, random, sample.recipe);
    if (HasFatalFailure()) return;
  }
}

TEST(Copy, TranspackEqualsTheNaiveWalkAndTouchesNothingElse) {
  Random random(73);
  const support::Limits limits = {.runs = 500, .bytes = 8 << 10};
  for (int i = 0; i < 2000; ++i) {
    const Sample src = support::random_layout(random, limits);
    const Sample dst = support::random_receive_layout(random, src.layout.size(), limits);
    for (const Engine& engine : kEngines) check_transpack(engine, src, dst, random);
    if (HasFatalFailure()) return;
  }
}

TEST(Copy, TranspackFromAndToDenseMemory) {
  Random random(74);
  for (int i = 0; i < 500; ++i) {
    const Sample sample = support::random_receive_layout(random);
    const std::int64_t at = random.between(-50, 50);
    const List offsets = {at};
    const List lengths = {sample.layout.size()};
    const Sample dense{value(Layout::blocks(offsets, lengths)), naive::blocks(offsets, lengths), "dense"};
    for (const Engine& engine : kEngines) {
      check_transpack(engine, sample, dense, random);
      check_transpack(engine, dense, sample, random);
    }
    if (HasFatalFailure()) return;
  }
}

// Every block size on both sides of those that have a kernel of their own, in each shape that a strip has.
TEST(Copy, EveryBlockSizeInEveryShape) {
  Random random(75);
  for (std::int64_t size = 1; size <= 140; ++size) {
    const Layout block = value(Layout::bytes(size));
    const naive::Typemap map = naive::bytes(size);
    List pages;
    List offsets;
    List lengths;
    for (std::int64_t i = 0; i < 37; ++i) {
      pages.push_back(2 * i + random.below(2));
      offsets.push_back(i * (size + 9));
      lengths.push_back(random.between(1, size + 8));
    }
    random.shuffle(pages);
    random.shuffle(offsets);
    for (const Engine& engine : kEngines) {
      for (const std::int64_t stride : {size + 1, -size - 3, 2 * size + 5}) {
        const naive::Typemap loop = naive::hvector(33, 1, stride, map);
        check_pack(engine, value(Layout::hvector(33, 1, stride, block)), loop, random, "loop");
        check_unpack(engine, value(Layout::hvector(33, 1, stride, block)), loop, random, "loop");
      }
      check_pack(engine, value(Layout::hvector(33, 1, 0, block)), naive::hvector(33, 1, 0, map), random, "broadcast");
      check_pack(engine, value(Layout::paged(size, pages)), naive::paged(size, pages), random, "list");
      check_unpack(engine, value(Layout::paged(size, pages)), naive::paged(size, pages), random, "list");
      check_pack(engine, value(Layout::blocks(offsets, lengths)), naive::blocks(offsets, lengths), random, "blocks");
      check_unpack(engine, value(Layout::blocks(offsets, lengths)), naive::blocks(offsets, lengths), random, "blocks");
    }
    if (HasFatalFailure()) FAIL() << "blocks of " << size << " bytes";
  }
}

TEST(Copy, EmptyFragmentsTouchNoMemory) {
  const Layout layout = value(Layout::vector(4, 1, 2, value(Layout::bytes(8))));
  for (const Engine& engine : kEngines) {
    for (const std::int64_t position : {0, 5, 8, 32}) {
      engine.pack(layout, nullptr, position, 0, nullptr);
      engine.unpack(layout, nullptr, position, 0, nullptr);
    }
    engine.pack(Layout(), nullptr, 0, 0, nullptr);
    EXPECT_TRUE(engine.transpack(Layout(), nullptr, Layout(), nullptr));
  }
}

TEST(Copy, TranspackOfDifferentSizesIsAnErrorAndMovesNothing) {
  Bytes src(16, std::byte{1});
  Bytes dst(16, std::byte{2});
  for (const Engine& engine : kEngines) {
    const auto result = engine.transpack(value(Layout::bytes(16)), src.data(), value(Layout::bytes(12)), dst.data());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::Code::invalid_argument);
    EXPECT_EQ(dst, Bytes(16, std::byte{2}));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
