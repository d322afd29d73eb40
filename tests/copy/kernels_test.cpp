// Every kernel of the table, called as a move is: each pair of accesses, each length with a kernel of its own, dense
// sides, streaming stores.
#include "lacuna/copy/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::Announced;
using copy_test::Bytes;
using copy_test::List;
using copy_test::Memory;
using support::Random;

LACUNA_ON_EVERY_SET(CopyKernels);

List lengths() {
  List all(140);
  std::iota(all.begin(), all.end(), 1);
  for (const std::int64_t length :
       {159, 160, 161, 191, 192, 193, 255, 256, 257, 320, 383, 511, 512, 513, 1000, 1023, 1024, 1025, 1088, 4099})
    all.push_back(length);
  return all;
}

// One side of a move: where its blocks are, and the numbers behind it.
struct Placed {
  BlockSide side;
  Access access = Access::stride;
  List offsets;
  std::vector<std::int32_t> narrow;
  std::int64_t low = 0;
  std::int64_t high = 0;

  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t i) const {
    return row * side.outer + (access == Access::stride ? i * side.stride : offsets[static_cast<std::size_t>(i)]);
  }
};

void place(Placed& p, const Move& move, bool dense, Random& random) {
  const auto count = static_cast<std::size_t>(move.count);
  if (p.access == Access::stride) {
    p.side = {.stride = dense ? move.length : move.length + random.between(0, 70), .outer = dense ? move.count * move.length : 0};
    if (!dense) {
      p.side.outer = (p.side.stride * move.count + random.below(9)) * (random.one_in(4) ? -1 : 1);
      if (random.one_in(4)) p.side.stride = -p.side.stride;
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) p.offsets.push_back(static_cast<std::int64_t>(i) * (move.length + 3) - 50);
    random.shuffle(p.offsets);
    p.narrow.assign(p.offsets.begin(), p.offsets.end());
    p.side = {.outer = (move.length + 3) * move.count};
    p.side.offsets = p.access == Access::list32 ? static_cast<const void*>(p.narrow.data()) : p.offsets.data();
  }
  p.low = std::numeric_limits<std::int64_t>::max();
  p.high = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t r = 0; r < move.rows; ++r) {
    for (std::int64_t i = 0; i < move.count; ++i) {
      p.low = std::min(p.low, p.at(r, i));
      p.high = std::max(p.high, p.at(r, i) + move.length);
    }
  }
}

// All blocks of a row are one; those of the other side follow one another.
void repeat(Placed& from, Placed& to, const Move& move) {
  from.side = {.stride = 0, .outer = std::abs(from.side.outer)};
  from.low = 0;
  from.high = (move.rows - 1) * from.side.outer + move.length;
  to.side = {.stride = move.length, .outer = std::abs(to.side.outer)};
  to.low = 0;
  to.high = (move.rows - 1) * to.side.outer + move.count * move.length;
}

std::string text_of(const Shape& shape, const Move& move, const Kernel& kernel) {
  return fmt::format("'{}' from {} to {}{}{}{}: {} rows of {} blocks of {} B, from {:+} and {:+}, to {:+} and {:+}", kernel.name,
                     static_cast<int>(shape.from), static_cast<int>(shape.to), shape.from_dense ? ", from dense" : "",
                     shape.to_dense ? ", to dense" : "", shape.stream ? ", streamed" : "", move.rows, move.count, move.length,
                     move.from.stride, move.from.outer, move.to.stride, move.to.outer);
}

void check(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Move move{.length = shape.length, .count = random.one_in(3) ? random.between(1, 5) : random.between(1, 37), .rows = random.between(1, 3)};
  Placed from{.access = shape.from};
  Placed to{.access = shape.to};
  if (shape.repeats && random.one_in(2)) move.count += random.below(9000 / move.length);
  place(from, move, shape.from_dense, random);
  place(to, move, shape.to_dense, random);
  if (shape.repeats) repeat(from, to, move);
  move.from = from.side;
  move.to = to.side;
  const Kernel kernel = kernel_for(shape);
  const std::string text = fmt::format("seed {}: {}", seed, text_of(shape, move, kernel));
  const Announced announced(text);
  const Memory source(from.low, from.high - from.low, random);
  const Memory target(to.low, to.high - to.low, random);
  Bytes expected = target.copy();
  for (std::int64_t r = 0; r < move.rows; ++r) {
    for (std::int64_t i = 0; i < move.count; ++i)
      std::memcpy(target.base(expected) + to.at(r, i), source.base() + from.at(r, i), static_cast<std::size_t>(move.length));
  }
  kernel.run(move, source.base(), target.base());
  end_of_streaming();
  ASSERT_TRUE(std::ranges::equal(target.all(), expected))
      << copy_test::difference(target.all(), expected) << "\n  from: " << source.text() << "; to: " << target.text() << "\n  " << text;
}

TEST_P(CopyKernels, MoveExactlyTheirBlocks) {
  using enum Access;
  std::vector<Shape> shapes;
  for (const auto& [from, to] : {std::pair{stride, stride},
                                 {list32, stride},
                                 {list64, stride},
                                 {stride, list32},
                                 {stride, list64},
                                 {list32, list32},
                                 {list64, list64}}) {
    for (const bool from_dense : {false, true}) {
      for (const bool to_dense : {false, true}) {
        if ((from_dense && from != stride) || (to_dense && to != stride)) continue;
        shapes.push_back({.from = from, .to = to, .from_dense = from_dense, .to_dense = to_dense});
        for (const bool apart : {false, true})
          shapes.push_back({.from = from, .to = to, .from_dense = from_dense, .to_dense = to_dense, .stream = true, .apart = apart});
      }
    }
  }
  for (const bool stream : {false, true}) shapes.push_back({.stream = stream, .repeats = true});
  std::uint64_t seed = 1000;
  for (const std::int64_t length : lengths()) {
    for (Shape shape : shapes) {
      shape.length = length;
      check(shape, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CopyKernels, OneBlockOfAnyLength) {
  List all(700);
  std::iota(all.begin(), all.end(), 0);
  for (const std::int64_t length : {1000, 1023, 1024, 1025, 1087, 1088, 1089, 2000, 4095, 4096, 4097, 10'000, 70'000})
    all.push_back(length);
  for (const std::int64_t length : all) {
    for (const bool stream : {false, true}) {
      Random random(static_cast<std::uint64_t>(length));
      const std::string text = fmt::format("copy_block of {} B{}", length, stream ? ", streamed" : "");
      const Announced announced(text);
      const Memory source(0, length, random);
      const Memory target(0, length, random);
      Bytes expected = target.copy();
      std::copy_n(source.data(), length, target.base(expected));
      copy_block(target.data(), source.data(), length, stream);
      end_of_streaming();
      ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << text << ": " << copy_test::difference(target.all(), expected);
      std::fill_n(target.data(), length, std::byte{});
      block(target.data(), source.data(), length);
      ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << text << " as block()";
    }
  }
}

TEST_P(CopyKernels, BlocksOfAnyLengths) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    List lengths;
    List from_offsets;
    List to_offsets;
    List starts{random.below(100)};  // a part of a longer list does not begin at 0
    const std::int64_t most = random.one_in(3) ? 600 : random.one_in(2) ? 64 : 9;
    std::int64_t span = 0;
    for (std::int64_t i = random.between(1, 60); i > 0; --i) {
      lengths.push_back(random.between(1, most));
      from_offsets.push_back(span);
      to_offsets.push_back(span + random.below(3));
      starts.push_back(starts.back() + lengths.back());
      span += lengths.back() + 3;
    }
    const std::string text = fmt::format("seed {}: {} blocks of up to {} B", seed, lengths.size(), most);
    const Announced announced(text);
    const Irregular blocks{.count = std::ssize(lengths), .offsets = from_offsets.data(), .starts = starts.data()};
    const std::int64_t ends = span - 3;
    const std::int64_t dense = starts.back() - starts.front();
    const Memory source(0, ends, random);
    const Memory packed(0, dense, random);
    const Memory target(0, span, random);
    const Memory unpacked(0, ends, random);
    Bytes as_packed = packed.copy();
    Bytes as_target = target.copy();
    Bytes as_unpacked = unpacked.copy();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::copy_n(source.data() + from_offsets[i], lengths[i], packed.base(as_packed) + starts[i] - starts[0]);
      std::copy_n(source.data() + from_offsets[i], lengths[i], target.base(as_target) + to_offsets[i]);
      std::copy_n(source.data() + from_offsets[i], lengths[i], unpacked.base(as_unpacked) + from_offsets[i]);
    }
    const IrregularKernel kernel = irregular_kernel();
    kernel.pack(blocks, source.data(), packed.data());
    ASSERT_TRUE(std::ranges::equal(packed.all(), as_packed)) << text;
    kernel.move(blocks, to_offsets.data(), source.data(), target.data());
    ASSERT_TRUE(std::ranges::equal(target.all(), as_target)) << text;
    kernel.unpack(blocks, packed.data(), unpacked.data());
    ASSERT_TRUE(std::ranges::equal(unpacked.all(), as_unpacked)) << text;
  }
}

// Collected in any order, more than are kept at once, of one length and of many, short ones and long.
TEST_P(CopyKernels, Pieces) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    struct Piece {
      std::int64_t from, to, bytes;
    };
    std::vector<Piece> list;
    const std::int64_t most = random.one_in(4) ? 300 : random.between(1, 40);
    const bool even = random.one_in(2);
    std::int64_t from_end = 0;
    std::int64_t to_end = 0;
    for (std::int64_t i = random.scaled(900) + 1; i > 0; --i) {
      const std::int64_t bytes = even ? most : random.between(1, most);
      from_end += random.below(5);
      to_end += random.below(5);
      list.push_back({from_end, to_end, bytes});
      from_end += bytes;
      to_end += bytes;
    }
    random.shuffle(list);
    const std::string text = fmt::format("seed {}: {} pieces of up to {} B", seed, list.size(), most);
    const Announced announced(text);
    const Memory source(0, from_end, random);
    const Memory target(0, to_end, random);
    Bytes expected = target.copy();
    Pieces pieces;
    const std::size_t half = list.size() / 2;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i == half) pieces.move();
      std::copy_n(source.data() + list[i].from, list[i].bytes, target.base(expected) + list[i].to);
      pieces.add(target.data() + list[i].to, source.data() + list[i].from, list[i].bytes);
    }
    pieces.move();
    pieces.move();  // nothing is left
    ASSERT_TRUE(std::ranges::equal(target.all(), expected)) << copy_test::difference(target.all(), expected) << "\n  " << text;
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
