// The bytes of elements, gathered and scattered. Those in memory of the emulated device are reached by its other
// mapping, as an MPI reaches a GPU's by the driver.
#include <algorithm>
#include <cstring>

#include "lacuna/device/emulated/allocations.hpp"
#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {
namespace {

// Where the bytes at an address can be touched: those of the emulated device elsewhere.
std::byte* reached(const void* base, std::int64_t at, std::int64_t bytes) {
  return device::emulated::Allocations::all().reached(static_cast<const std::byte*>(base) + at, bytes);
}

// Elements without gaps in or between them: one copy instead of millions.
bool is_dense(const Map& map) { return map.blocks.size() == 1 && map.blocks[0].bytes == map.extent; }

}  // namespace

std::vector<std::byte> packed(const void* base, Count count, const Map& map) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * map.size));
  std::byte* to = bytes.data();
  if (is_dense(map) && count > 0) {
    std::memcpy(to, reached(base, map.blocks[0].at, count * map.size), bytes.size());
    return bytes;
  }
  for (Count i = 0; i < count; ++i) {
    for (const Map::Block& block : map.blocks) {
      std::memcpy(to, reached(base, i * map.extent + block.at, block.bytes), static_cast<std::size_t>(block.bytes));
      to += block.bytes;
    }
  }
  return bytes;
}

void unpack(std::span<const std::byte> bytes, void* base, Count count, const Map& map) {
  if (is_dense(map)) {
    const std::size_t some = std::min(bytes.size(), static_cast<std::size_t>(count * map.size));
    if (some > 0) std::memcpy(reached(base, map.blocks[0].at, static_cast<std::int64_t>(some)), bytes.data(), some);
    return;
  }
  for (Count i = 0; i < count; ++i) {
    for (const Map::Block& block : map.blocks) {
      const std::size_t some = std::min(bytes.size(), static_cast<std::size_t>(block.bytes));
      if (some == 0) return;
      std::memcpy(reached(base, i * map.extent + block.at, static_cast<std::int64_t>(some)), bytes.data(), some);
      bytes = bytes.subspan(some);
    }
  }
}

namespace calls {

using mpi::kSuccess;

int Pack(const void* base, int count, Datatype type, void* out, int size, int* position, Comm /*comm*/) {
  const std::vector<std::byte> bytes = packed(base, count, *map_of(type));
  if (std::cmp_greater(bytes.size(), size - *position)) return mpi::kErrTruncate;
  if (!bytes.empty()) std::memcpy(reached(out, *position, map_of(type)->size * count), bytes.data(), bytes.size());
  *position += static_cast<int>(bytes.size());
  return kSuccess;
}

int Unpack(const void* in, int size, int* position, void* base, int count, Datatype type, Comm /*comm*/) {
  const auto map = map_of(type);
  const std::int64_t bytes = map->size * count;
  if (bytes > size - *position) return mpi::kErrTruncate;
  unpack({reached(in, *position, bytes), static_cast<std::size_t>(bytes)}, base, count, *map);
  *position += static_cast<int>(bytes);
  return kSuccess;
}

}  // namespace calls

}  // namespace lacuna::test::fake
