#include "tests/fuzz/programs/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace lacuna::fuzz {
namespace {

namespace fake = test::fake;
using fake::Count;
using support::Random;

constexpr std::int64_t kInt = 4;
constexpr std::int64_t kMostBlocks = 200;

std::int64_t divisor(Random& random, std::int64_t of, std::int64_t most) {
  std::int64_t by = random.between(1, std::min(of, most));
  while (of % by != 0) --by;
  return by;
}

void add_blocks(Random& random, Shape& shape, std::int64_t bytes) {
  std::int64_t at = random.below(9);
  const std::int64_t longest = std::max<std::int64_t>({1, bytes / random.between(1, 60), bytes / kMostBlocks + 1});
  while (bytes > 0) {
    const std::int64_t length = std::min(bytes, random.between(1, longest));
    shape.blocks.push_back({at, length});
    at += length + random.below(random.one_in(3) ? 100 : 6);
    bytes -= length;
  }
  shape.extent = at + random.below(20);
  if (random.one_in(4)) random.shuffle(shape.blocks);
}

}  // namespace

std::int64_t Shape::size() const {
  return count *
         std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}, [](std::int64_t sum, const Block& one) { return sum + one.bytes; });
}

std::vector<std::byte> Shape::pack(const std::byte* base) const {
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Block& block : blocks) {
      const std::byte* const from = base + i * extent + block.at;
      bytes.insert(bytes.end(), from, from + block.bytes);
    }
  }
  return bytes;
}

void Shape::unpack(const std::vector<std::byte>& bytes, std::byte* base) const {
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Block& block : blocks) {
      const std::int64_t some = std::min(block.bytes, std::ssize(bytes) - at);
      if (some <= 0) return;
      std::memcpy(base + i * extent + block.at, bytes.data() + at, static_cast<std::size_t>(some));
      at += some;
    }
  }
}

fake::Datatype Shape::make(const fake::Host& mpi) const {
  std::vector<Count> lengths, places;
  for (const Block& block : blocks) {
    lengths.push_back(block.bytes);
    places.push_back(block.at);
  }
  const std::int64_t stride = blocks.size() > 1 ? blocks[1].at - blocks[0].at : 0;
  fake::Datatype made{};
  std::vector<fake::Datatype> inner;
  switch (kind) {
    case Kind::bytes: made = fake::contiguous(extent, fake::byte_type()); break;
    case Kind::vector:
      made = fake::vector(static_cast<Count>(blocks.size()), blocks[0].bytes / kInt, stride / kInt, fake::int_type());
      break;
    case Kind::indexed: made = fake::hindexed(lengths, places, fake::byte_type()); break;
    case Kind::structure: {
      const std::vector<fake::Datatype> olds(blocks.size(), fake::byte_type());
      made = fake::structure(lengths, places, olds);
      break;
    }
    case Kind::nested: {
      inner.push_back(fake::contiguous(blocks[0].bytes, fake::byte_type()));
      made = fake::hvector(static_cast<Count>(blocks.size()), 1, stride, inner.back());
      break;
    }
  }
  inner.push_back(made);
  fake::Datatype type = fake::resized(made, 0, extent);
  mpi.Type_commit(&type);
  for (fake::Datatype& one : inner) mpi.Type_free(&one);
  return type;
}

std::string Shape::describe() const {
  static constexpr std::array kNames{"bytes", "vector", "indexed", "structure", "nested"};
  return fmt::format("{} x {} of {} blocks, {} bytes in {}", count, kNames.at(static_cast<std::size_t>(kind)), blocks.size(), size(),
                     span());
}

Shape draw_shape(Random& random, std::int64_t bytes) {
  Shape shape;
  if (bytes == 0) return {.blocks = {}, .count = 0, .extent = 1};
  shape.count = random.one_in(2) ? 1 : divisor(random, bytes, 8);
  const std::int64_t each = bytes / shape.count;
  shape.kind = static_cast<Shape::Kind>(random.below(5));
  if (shape.kind == Shape::Kind::vector && each % kInt != 0) shape.kind = Shape::Kind::nested;
  switch (shape.kind) {
    case Shape::Kind::bytes:
      shape.blocks = {{0, each}};
      shape.extent = each;
      return shape;
    case Shape::Kind::vector:
    case Shape::Kind::nested: {
      const std::int64_t unit = shape.kind == Shape::Kind::vector ? kInt : 1;
      const std::int64_t number = divisor(random, each / unit, kMostBlocks);
      const std::int64_t length = each / number, stride = length + unit * random.below(12);
      for (std::int64_t i = 0; i < number; ++i) shape.blocks.push_back({i * stride, length});
      shape.extent = number * stride + unit * random.below(3);
      return shape;
    }
    default: add_blocks(random, shape, each); return shape;
  }
}

}  // namespace lacuna::fuzz
