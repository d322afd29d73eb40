// The kernels, compiled once for each instruction set that Highway knows here, and the table that they are chosen from.
#include "lacuna/copy/kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "lacuna/copy/copy.hpp"

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/copy/blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

// --- many blocks -----------------------------------------------------------------------------------------------------

template <Access A>
Index offset_of(const BlockSide& side, Index i) {
  if constexpr (A == Access::list32) return static_cast<const std::int32_t*>(side.offsets)[i];
  if constexpr (A == Access::list64) return static_cast<const std::int64_t*>(side.offsets)[i];
  return i * side.stride;
}

// Past the caches, and the lines of blocks further on are asked for.
template <Access From, Access To>
void ask_and_move(const Move& m, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  for (Index row = 0; row < m.rows; ++row) {
    for (Index i = 0; i < m.count; ++i) {
      const Index next = i + kBlocksAhead;
      if (next < m.count + m.known) {
        ask_for(m.length, from + offset_of<From>(m.from, next));
      } else if (row + 1 < m.rows && next - m.count < m.count) {
        ask_for(m.length, from + m.from.outer + offset_of<From>(m.from, next - m.count));
      }
      Streamed::move<true>(m.length, from + offset_of<From>(m.from, i), to + offset_of<To>(m.to, i));
    }
    from += m.from.outer;
    to += m.to.outer;
  }
}

template <class Block, Access From, Access To>
void move_blocks(const Move& move, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  const Move m = move;  // a copy: what is stored could alias the original
  const auto block = [length = m.length, by_memcpy = Long::by_memcpy(m.length, m.length * m.count * m.rows)](const std::byte* f,
                                                                                                             std::byte* t) {
    if constexpr (std::is_same_v<Block, Long>) {
      Long::move(length, f, t, by_memcpy);
    } else {
      Block::move(length, f, t);
    }
  };
  if constexpr (std::is_same_v<Block, Streamed>) {
    // A dense source is seen coming anyway.
    if (m.length >= kLeastAsked && (From != Access::stride || m.from.stride != m.length)) return ask_and_move<From, To>(m, from, to);
  }
  for (Index row = 0; row < m.rows; ++row) {
#pragma GCC unroll 4
    for (Index i = 0; i < m.count; ++i) block(from + offset_of<From>(m.from, i), to + offset_of<To>(m.to, i));
    from += m.from.outer;
    to += m.to.outer;
  }
}

// Two neighbouring offsets of a list in one load.
template <Access A>
struct Two {
  Two(const BlockSide& side, Index i) : first(offset_of<A>(side, i)), second(offset_of<A>(side, i + 1)) {}
  Index first;
  Index second;
};
template <>
struct Two<Access::list32> {
  Two(const BlockSide& side, Index i) {
    std::int64_t both = 0;
    std::memcpy(&both, static_cast<const std::int32_t*>(side.offsets) + i, sizeof both);
    first = static_cast<std::int32_t>(both);
    second = both >> 32;
    if constexpr (std::endian::native == std::endian::big) std::swap(first, second);
  }
  Index first;
  Index second;
};

// To a dense side, blocks of 2, 4 or 8 bytes, 16 bytes to a store, and two offsets to a load: a CPU does three of
// either at a time.
template <class T, Access From>
void gather(const Move& move, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  constexpr int kPer = 16 / sizeof(T);
  using Vector __attribute__((vector_size(16))) = T;
  const Move m = move;
  for (Index row = 0; row < m.rows; ++row) {
    const auto load = [&](Index offset) {
      T value;
      std::memcpy(&value, from + offset, sizeof value);
      return value;
    };
    Index i = 0;
#pragma GCC unroll 2
    for (; i + kPer <= m.count; i += kPer) {
      const Two<From> a(m.from, i);
      Vector v;
      if constexpr (kPer == 8) {
        const Two<From> b(m.from, i + 2), c(m.from, i + 4), d(m.from, i + 6);
        v = Vector{load(a.first), load(a.second), load(b.first), load(b.second),
                   load(c.first), load(c.second), load(d.first), load(d.second)};
      } else if constexpr (kPer == 4) {
        const Two<From> b(m.from, i + 2);
        v = Vector{load(a.first), load(a.second), load(b.first), load(b.second)};
      } else {
        v = Vector{load(a.first), load(a.second)};
      }
      std::memcpy(to + i * static_cast<Index>(sizeof(T)), &v, sizeof v);
    }
    for (; i < m.count; ++i) {
      const T value = load(offset_of<From>(m.from, i));
      std::memcpy(to + i * static_cast<Index>(sizeof(T)), &value, sizeof value);
    }
    from += m.from.outer;
    to += m.to.outer;
  }
}

// From a dense side, blocks of 2, 4 or 8 bytes, two to a load, and two offsets to a load.
template <class T, Access To>
void scatter(const Move& move, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  using Pair __attribute__((vector_size(2 * sizeof(T)))) = T;
  const Move m = move;
  for (Index row = 0; row < m.rows; ++row) {
    Index i = 0;
#pragma GCC unroll 2
    for (; i + 2 <= m.count; i += 2) {
      Pair pair;
      std::memcpy(&pair, from + i * static_cast<Index>(sizeof(T)), sizeof pair);
      const Two<To> at(m.to, i);
      const T first = pair[0], second = pair[1];
      std::memcpy(to + at.first, &first, sizeof first);
      std::memcpy(to + at.second, &second, sizeof second);
    }
    if (i < m.count) std::memcpy(to + offset_of<To>(m.to, i), from + i * static_cast<Index>(sizeof(T)), sizeof(T));
    from += m.from.outer;
    to += m.to.outer;
  }
}

#undef LACUNA_TWELVE
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// To a dense side, blocks of 12 bytes: the store writes 16 bytes, of which the next block overwrites the last four. The
// last block of all is stored exactly.
template <Access From>
void gather12(const Move& move, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  const Move m = move;
  for (Index row = 0; row < m.rows; ++row) {
    const Index last = m.count - (row + 1 == m.rows ? 1 : 0);
    Index i = 0;
    if constexpr (From == Access::stride) {
      const Index whole = whole_vectors(m.count, m.from.stride, 16);
#pragma GCC unroll 4
      for (; i < whole; ++i) Word<16>(from + i * m.from.stride).store(to + 12 * i);
    }
#pragma GCC unroll 4
    for (; i < last; ++i) Twelve(from + offset_of<From>(m.from, i)).store(to + 12 * i);
    if (last < m.count) Pair<Word<8>, 8>::move(12, from + offset_of<From>(m.from, last), to + 12 * last);
    from += m.from.outer;
    to += m.to.outer;
  }
}
#define LACUNA_TWELVE 1
#else
#define LACUNA_TWELVE 0
#endif

// One block again and again, of 1 to 16 bytes, a power of two: a vector of it, the last one overlaps.
template <int N>
void fill_row(const std::byte* from, std::byte* to, Index count) {
  constexpr Index width = 32;
  using Vector __attribute__((vector_size(width))) = typename Bytes<std::min(N, 8)>::Type;
  Vector v;
  const Word<N> block(from);
  if constexpr (N == 16) {
    using Half __attribute__((vector_size(16))) = std::uint64_t;
    const auto half = reinterpret_cast<Half>(block.value);
    v = __builtin_shufflevector(half, half, 0, 1, 0, 1);
  } else {
    v = Vector{} + block.value;
  }
  const Index bytes = count * N;
  if (bytes < width) return static_cast<void>(std::memcpy(to, &v, static_cast<std::size_t>(bytes)));
#pragma GCC unroll 4
  for (Index at = 0; at < bytes - width; at += width) std::memcpy(to + at, &v, sizeof v);
  std::memcpy(to + bytes - width, &v, sizeof v);
}
// Of any length: what is there already is copied behind itself, while it stays in the L1 cache.
void fill_row(const std::byte* from, std::byte* to, Index count, Index length) {
  std::memcpy(to, from, static_cast<std::size_t>(length));
  const Index piece = std::max<Index>(1, 8192 / length) * length, bytes = count * length;
  for (Index have = length, next = 0; have < bytes; have += next) {
    next = std::min({have, piece, bytes - have});
    std::memcpy(to + have, to, static_cast<std::size_t>(next));
  }
}
void fill_blocks(const std::byte* from, std::byte* to, Index count, Index length) {
  switch (length) {
    case 1: return fill_row<1>(from, to, count);
    case 2: return fill_row<2>(from, to, count);
    case 4: return fill_row<4>(from, to, count);
    case 8: return fill_row<8>(from, to, count);
    case 16: return fill_row<16>(from, to, count);
    default: return fill_row(from, to, count, length);
  }
}

// A broadcast source: one block for each row. Where the destination is in no cache, some KiB are made and streamed.
template <bool Stream>
void fill(const Move& move, const std::byte* from, std::byte* to) {
  const Move m = move;
  constexpr Index most = 4096;
  for (Index row = 0; row < m.rows; ++row, from += m.from.outer, to += m.to.outer) {
    if (const Index some = most / m.length; Stream && m.count > some) {
      alignas(kLine) std::byte stage[most];
      fill_blocks(from, stage, some, m.length);
      for (Index i = 0; i < m.count; i += some) Streamed::move(std::min(some, m.count - i) * m.length, stage, to + i * m.length);
    } else {
      fill_blocks(from, to, m.count, m.length);
    }
  }
}

// --- the table -------------------------------------------------------------------------------------------------------

struct KernelRow {
  Index least, most;  // lengths
  Run stride_to_stride, list32_to_stride, stride_to_list32, list64_to_stride, stride_to_list64, list32_to_list32, list64_to_list64;
  const char* name;
};

template <class Block>
constexpr KernelRow row(Index least, Index most, const char* name) {
  using enum Access;
  return {.least = least,
          .most = most,
          .stride_to_stride = &move_blocks<Block, stride, stride>,
          .list32_to_stride = &move_blocks<Block, list32, stride>,
          .stride_to_list32 = &move_blocks<Block, stride, list32>,
          .list64_to_stride = &move_blocks<Block, list64, stride>,
          .stride_to_list64 = &move_blocks<Block, stride, list64>,
          .list32_to_list32 = &move_blocks<Block, list32, list32>,
          .list64_to_list64 = &move_blocks<Block, list64, list64>,
          .name = name};
}

constexpr Index kAny = INT64_MAX;
constexpr KernelRow kRows[] = {
    row<Exact<Word<1>>>(1, 1, "1"),
    row<Exact<Word<2>>>(2, 2, "2"),
    row<Pair<Word<2>, 2>>(3, 3, "2+2 overlapping"),
    row<Exact<Word<4>>>(4, 4, "4"),
    row<Pair<Word<4>, 4>>(5, 7, "4+4 overlapping"),
    row<Exact<Word<8>>>(8, 8, "8"),
    row<Pair<Word<8>, 8>>(9, 15, "8+8 overlapping"),
    row<Exact<Word<16>>>(16, 16, "16"),
    row<Pair<Word<16>, 16>>(17, 31, "16+16 overlapping"),
    row<Exact<Halves>>(32, 32, "32"),
    row<Several<Halves, 2>>(33, 64, "32+32 overlapping"),
    row<Several<Word<32>, 3>>(65, 96, "32+32+32 overlapping"),
    row<Several<Word<32>, 4>>(97, 128, "32+32+32+32 overlapping"),
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
    row<Several<Wide, 3, kWide>>(129, 192, "3 x 64 overlapping"),
    row<Several<Wide, 4, kWide>>(193, 256, "4 x 64 overlapping"),
    row<Several<Wide, 5, kWide>>(257, 320, "5 x 64 overlapping"),
    row<Several<Wide, 6, kWide>>(321, 384, "6 x 64 overlapping"),
    row<Several<Wide, 7, kWide>>(385, 448, "7 x 64 overlapping"),
    row<Long>(449, kAny, "256 at a time"),
#else
    row<Long>(129, kAny, "128 at a time"),
#endif
};
// Where the bytes come from memory, stride by stride: the more often a line is touched, the earlier it is there, up to
// four times (a CPU's own prefetching takes its cue from the accesses). Stores gain more than loads.
constexpr KernelRow kColdApart[] = {
    row<Several<Part<4>, 2, 4>>(5, 8, "4+4"),
    row<Several<Part<4>, 3, 4>>(9, 12, "4+4+4"),
    row<Several<Part<4>, 4, 4>>(13, 16, "4+4+4+4"),
};
constexpr KernelRow kColdToGaps[] = {
    row<Several<Part<8>, 2, 8>>(16, 16, "8+8"),   row<Several<Part<8>, 3, 8>>(17, 24, "3 x 8"),
    row<Several<Part<8>, 4, 8>>(25, 32, "4 x 8"), row<Several<Part<8>, 5, 8>>(33, 40, "5 x 8"),
    row<Several<Part<8>, 6, 8>>(41, 48, "6 x 8"), row<Several<Part<8>, 7, 8>>(49, 56, "7 x 8"),
    row<Several<Part<8>, 8, 8>>(57, 63, "8 x 8"),
};
constexpr KernelRow kColdDense[] = {
    row<Several<Part<8>, 2, 8>>(16, 16, "8+8"),
    row<Several<Part<8>, 4, 8>>(32, 32, "4 x 8"),
    row<Several<Part<16>, 3, 16>>(33, 48, "3 x 16"),
    row<Several<Part<16>, 4, 16>>(49, 64, "4 x 16"),
};
constexpr KernelRow kColdLonger[] = {
    row<Several<Part<16>, 4, 16>>(64, 64, "4 x 16"),   row<Several<Part<16>, 5, 16>>(65, 80, "5 x 16"),
    row<Several<Part<16>, 6, 16>>(81, 96, "6 x 16"),   row<Several<Part<16>, 7, 16>>(97, 112, "7 x 16"),
    row<Several<Part<16>, 8, 16>>(113, 128, "8 x 16"),
};
// Where a list says: nothing sees the lines coming, and each access more takes its time.
constexpr KernelRow kColdListed[] = {
    row<Several<Part<16>, 2, 16>>(32, 32, "16+16"),
    row<Several<Word<32>, 2>>(33, 64, "32+32, at once"),
};
constexpr KernelRow kStreamed = row<Streamed>(64, kAny, "streaming stores");

// Better ones where a side is dense.
struct Special {
  Index length;
  bool to_dense;  // else from_dense
  Access scattered;
  Run run;
  const char* name;
};
constexpr Special kSpecials[] = {
    {4, true, Access::stride, &gather<std::uint32_t, Access::stride>, "4, four to a store"},
    {2, true, Access::list32, &gather<std::uint16_t, Access::list32>, "2, eight to a store"},
    {2, false, Access::list32, &scatter<std::uint16_t, Access::list32>, "2, two to a load"},
    {4, true, Access::list32, &gather<std::uint32_t, Access::list32>, "4, four to a store"},
    {8, true, Access::stride, &gather<std::uint64_t, Access::stride>, "8, two to a store"},
    {8, true, Access::list32, &gather<std::uint64_t, Access::list32>, "8, two to a store"},
    {4, false, Access::stride, &scatter<std::uint32_t, Access::stride>, "4, two to a load"},
    {4, false, Access::list32, &scatter<std::uint32_t, Access::list32>, "4, two to a load"},
    {8, false, Access::list32, &scatter<std::uint64_t, Access::list32>, "8, two to a load"},
#if LACUNA_TWELVE
    {12, true, Access::stride, &gather12<Access::stride>, "12, overlapping stores of 16"},
    {12, true, Access::list32, &gather12<Access::list32>, "12, overlapping stores of 16"},
#endif
};

Run pick(const KernelRow& row, Access from, Access to) {
  using enum Access;
  if (from == stride && to == stride) return row.stride_to_stride;
  if (to == stride) return from == list32 ? row.list32_to_stride : row.list64_to_stride;
  if (from == stride) return to == list32 ? row.stride_to_list32 : row.stride_to_list64;
  return from == list32 ? row.list32_to_list32 : row.list64_to_list64;
}

}  // namespace

// The row of a length: a table up to 449, the last row beyond.
constexpr auto kRowOf = [] {
  std::array<std::uint8_t, 450> rows{};
  for (std::size_t length = 1; length < rows.size(); ++length) {
    while (std::cmp_greater(length, kRows[rows[length]].most)) ++rows[length];
  }
  return rows;
}();

// Bytes of blocks at places of a list that are packed past the caches. The loads of shorter ones, and of those a stride
// apart below kLongBlock, hold up the buffers that combine lines.
constexpr Index kListedPast = 512;

const KernelRow* find_in(std::span<const KernelRow> rows, Index length) {
  const auto found = std::ranges::find_if(rows, [&](const KernelRow& row) { return row.least <= length && length <= row.most; });
  return found == rows.end() ? nullptr : &*found;
}

// Null: as if the bytes were in a cache.
const KernelRow* cold_row(const Shape& shape) {
  if (shape.from != Access::stride || shape.to != Access::stride) return find_in(kColdListed, shape.length);
  const KernelRow* found = shape.apart ? find_in(kColdApart, shape.length) : nullptr;
  if (found == nullptr && shape.to_dense) found = find_in(kColdDense, shape.length);
  if (found == nullptr && !shape.to_dense) found = find_in(kColdToGaps, shape.length);
  return found != nullptr ? found : find_in(kColdLonger, shape.length);
}

Kernel FindKernel(const Shape& shape) {
  // Longer blocks are as fast as memcpy in any case.
  if (shape.repeats && shape.length <= kLine)
    return shape.stream ? Kernel{&fill<true>, "one again and again, streamed", true} : Kernel{&fill<false>, "one again and again"};
  const Index packed = shape.from == Access::stride ? kLongBlock : kListedPast;
  const bool streams = shape.to_dense ? shape.length >= packed : shape.length >= Streamed::kShort || shape.length % 64 == 0;
  if (shape.stream && streams) return {pick(kStreamed, shape.from, shape.to), kStreamed.name, true};
  const KernelRow& found =
      std::cmp_less(shape.length, kRowOf.size()) ? kRows[kRowOf[static_cast<std::size_t>(shape.length)]] : kRows[std::size(kRows) - 1];
  if (shape.stream) {
    if (const KernelRow* cold = cold_row(shape); cold != nullptr) return {pick(*cold, shape.from, shape.to), cold->name};
  }
  if ((shape.length <= 8 || shape.length == 12) && (shape.to_dense || shape.from_dense)) {
    for (const Special& special : kSpecials) {
      if (special.length != shape.length) continue;
      if (special.to_dense ? shape.to_dense && shape.from == special.scattered : shape.from_dense && shape.to == special.scattered)
        return {special.run, special.name};
    }
  }
  return {pick(found, shape.from, shape.to), found.name};
}

const char* InstructionSet() { return hwy::TargetName(HWY_TARGET); }

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindKernel);
HWY_EXPORT(InstructionSet);

Kernel kernel_for(const Shape& shape) { return HWY_DYNAMIC_DISPATCH(FindKernel)(shape); }
void end_of_streaming() { hwy::FlushStream(); }
const char* instruction_set() { return HWY_DYNAMIC_DISPATCH(InstructionSet)(); }

}  // namespace lacuna::copy
#endif
