// A block of a tile, transposed in registers. Included once for each instruction set, into its namespace.
//
//   square   as many rows as a vector has elements        whole vectors of both sides
//   tall     one lane of 16 bytes of each row             whole vectors of each column
//   wide     whole vectors of each row                    one lane of each column
#if defined(LACUNA_COPY_REGISTERS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LACUNA_COPY_REGISTERS_INL
#undef LACUNA_COPY_REGISTERS_INL
#else
#define LACUNA_COPY_REGISTERS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lacuna/copy/blocks-inl.hpp"
#include "lacuna/copy/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

constexpr int kWidest = HWY_TARGET <= HWY_AVX3 ? 64 : HWY_TARGET <= HWY_AVX2 ? 32 : 16;
constexpr int kRegisters = HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3 ? 16 : 32;

// A block of a tile that is transposed in registers: `Load` bytes of each row become `Store` bytes of each column.
// Within the lanes of 16 bytes rows are interleaved; then a square's lanes are transposed. A tall or wide one, of which
// one side is a single lane, needs no more than that. The compiler's vectors: for their shuffles of any two by
// constants.
template <class T, int Load, int Store>
struct Block {
  static constexpr int kWidth = std::max(Load, Store);
  using Vector __attribute__((vector_size(kWidth))) = T;
  using Words __attribute__((vector_size(kWidth))) = std::uint64_t;
  using One __attribute__((vector_size(16))) = std::uint64_t;
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));  // of a lane
  static constexpr int kLanes = kWidth / 16;
  static constexpr int kRows = Store / static_cast<int>(sizeof(T));
  static constexpr int kColumns = Load / static_cast<int>(sizeof(T));
};

// The lower or upper halves of each lane of a and b, element by element in turns.
template <int PerLane, bool Upper, std::size_t... I>
HWY_INLINE auto interleaved(auto a, auto b, std::index_sequence<I...>) {
  constexpr int n = sizeof...(I);
  const auto source = [](int i) constexpr {
    const int within = i % PerLane;
    return (within % 2 != 0 ? n : 0) + i / PerLane * PerLane + (Upper ? PerLane / 2 : 0) + within / 2;
  };
  return __builtin_shufflevector(a, b, source(static_cast<int>(I))...);
}

// log2(kElements) times: vector i and the one half of all further on, interleaved.
template <class B, int Left = B::kElements>
HWY_INLINE void transpose_in_lanes(typename B::Vector* v) {
  if constexpr (Left > 1) {
    using All = std::make_index_sequence<static_cast<std::size_t>(B::kElements * B::kLanes)>;
    typename B::Vector next[B::kElements];
#pragma GCC unroll 16
    for (int i = 0; i < B::kElements / 2; ++i) {
      next[2 * i] = interleaved<B::kElements, false>(v[i], v[i + B::kElements / 2], All());
      next[2 * i + 1] = interleaved<B::kElements, true>(v[i], v[i + B::kElements / 2], All());
    }
#pragma GCC unroll 16
    for (int i = 0; i < B::kElements; ++i) v[i] = next[i];
    transpose_in_lanes<B, Left / 2>(v);
  }
}

// kLanes vectors of kLanes lanes.
template <class V>
HWY_INLINE void transpose_lanes(V* v) {
  if constexpr (sizeof(V) == 32) {
    const V a = __builtin_shufflevector(v[0], v[1], 0, 1, 4, 5);
    const V b = __builtin_shufflevector(v[0], v[1], 2, 3, 6, 7);
    v[0] = a;
    v[1] = b;
  } else if constexpr (sizeof(V) == 64) {
    const V low_ab = __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 8, 9, 10, 11);
    const V high_ab = __builtin_shufflevector(v[0], v[1], 4, 5, 6, 7, 12, 13, 14, 15);
    const V low_cd = __builtin_shufflevector(v[2], v[3], 0, 1, 2, 3, 8, 9, 10, 11);
    const V high_cd = __builtin_shufflevector(v[2], v[3], 4, 5, 6, 7, 12, 13, 14, 15);
    v[0] = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5, 8, 9, 12, 13);
    v[1] = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7, 10, 11, 14, 15);
    v[2] = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5, 8, 9, 12, 13);
    v[3] = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7, 10, 11, 14, 15);
  }
}

// Rows of one group: as many as a lane has elements.
template <class B>
HWY_INLINE void load_group(const std::byte* from, const Index* row_from, int g, typename B::Words* halfway) {
  typename B::Vector v[B::kElements];
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) std::memcpy(&v[i], from + row_from[g * B::kElements + i], sizeof v[i]);
  transpose_in_lanes<B>(v);
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) std::memcpy(&halfway[i * B::kLanes + g], &v[i], sizeof v[i]);
}

// `halfway` stays in registers where these suffice: an EPYC of 2022 takes four times as long where it is stored and
// loaded again. Of more vectors than that the groups are a loop, and `halfway` is memory.
template <class B>
HWY_INLINE void move_square(const std::byte* from, const Index* row_from, std::byte* to, const Index* column_to) {
  alignas(kLine) typename B::Words halfway[B::kRows];
  if constexpr (B::kRows <= kRegisters / 2) {
#pragma GCC unroll 16
    for (int g = 0; g < B::kLanes; ++g) load_group<B>(from, row_from, g, halfway);
  } else {
#pragma GCC unroll 1
    for (int g = 0; g < B::kLanes; ++g) load_group<B>(from, row_from, g, halfway);
  }
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) {
    transpose_lanes(&halfway[i * B::kLanes]);
#pragma GCC unroll 4
    for (int k = 0; k < B::kLanes; ++k) {
      std::memcpy(to + column_to[k * B::kElements + i], &halfway[i * B::kLanes + k], B::kWidth);
    }
  }
}

// A vector of lanes that lie apart.
template <class B>
HWY_INLINE typename B::Vector joined(const typename B::One* lane) {
  if constexpr (B::kLanes == 1) {
    return reinterpret_cast<typename B::Vector>(lane[0]);
  } else {
    const auto low = __builtin_shufflevector(lane[0], lane[1], 0, 1, 2, 3);
    if constexpr (B::kLanes == 2) {
      return reinterpret_cast<typename B::Vector>(low);
    } else {
      const auto high = __builtin_shufflevector(lane[2], lane[3], 0, 1, 2, 3);
      return reinterpret_cast<typename B::Vector>(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
    }
  }
}

// All of a lane.
struct Whole {
  HWY_INLINE void load(auto& lane, const std::byte* from) const { std::memcpy(&lane, from, 16); }
  HWY_INLINE void store(const auto& lane, std::byte* to) const { std::memcpy(to, &lane, 16); }
  [[nodiscard]] bool has(int) const { return true; }
};

// The first `count` elements of a lane: no other byte is stored, and none of a page that has no wanted one is loaded.
#undef LACUNA_FEW
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define LACUNA_FEW 1
template <class T>
struct Few {
  explicit Few(Index count) : count(count), mask(static_cast<__mmask16>((1U << (static_cast<unsigned>(count) * sizeof(T))) - 1)) {}
  HWY_INLINE void load(auto& lane, const std::byte* from) const {
    lane = reinterpret_cast<std::remove_reference_t<decltype(lane)>>(_mm_maskz_loadu_epi8(mask, from));
  }
  HWY_INLINE void store(const auto& lane, std::byte* to) const { _mm_mask_storeu_epi8(to, mask, reinterpret_cast<__m128i>(lane)); }
  [[nodiscard]] bool has(int i) const { return i < count; }
  Index count;
  __mmask16 mask;
};
#elif LACUNA_LANES
#define LACUNA_FEW 1
template <class T>
struct Few {
  explicit Few(Index count) : count(count), bytes(count * static_cast<Index>(sizeof(T))) {
    const auto word = static_cast<Index>(std::bit_floor(static_cast<std::size_t>(bytes)));
    alignas(Lane) std::uint8_t order[sizeof(Lane)];
    for (Index i = 0; i < std::ssize(order); ++i) order[i] = static_cast<std::uint8_t>(i < word ? i : i + bytes - 2 * word);
    words = load_lane(order);
  }
  HWY_INLINE void load(auto& lane, const std::byte* from) const {
    const Lane loaded = load_near_page_end(from, bytes);
    std::memcpy(&lane, &loaded, sizeof loaded);
  }
  HWY_INLINE void store(const auto& lane, std::byte* to) const {
    Lane stored;
    std::memcpy(&stored, &lane, sizeof stored);
    store_words(permuted(stored, words), to, bytes);
  }
  [[nodiscard]] bool has(int i) const { return i < count; }
  Index count;
  Index bytes;
  Lane words;
};
#else
#define LACUNA_FEW 0
#endif

// One lane of each row, or as many of its elements as there are columns; a whole vector of each column.
template <class B, class Part>
HWY_INLINE void move_tall(const std::byte* from, const Index* row_from, std::byte* to, const Index* column_to, Part part) {
  typename B::Vector v[B::kElements];
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) {
    typename B::One lane[B::kLanes];
#pragma GCC unroll 4
    for (int k = 0; k < B::kLanes; ++k) part.load(lane[k], from + row_from[k * B::kElements + i]);
    v[i] = joined<B>(lane);
  }
  transpose_in_lanes<B>(v);
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) {
    if (part.has(i)) std::memcpy(to + column_to[i], &v[i], sizeof v[i]);
  }
}

// A whole vector of each row; one lane of each column, or as many of its elements as there are rows.
template <class B, class Part>
HWY_INLINE void move_wide(const std::byte* from, const Index* row_from, std::byte* to, const Index* column_to, Part part) {
  typename B::Vector v[B::kElements] = {};
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) {
    if (part.has(i)) std::memcpy(&v[i], from + row_from[i], sizeof v[i]);
  }
  transpose_in_lanes<B>(v);
#pragma GCC unroll 16
  for (int i = 0; i < B::kElements; ++i) {
    typename B::One lane[B::kLanes];
    std::memcpy(lane, &v[i], sizeof v[i]);
#pragma GCC unroll 4
    for (int k = 0; k < B::kLanes; ++k) part.store(lane[k], to + column_to[k * B::kElements + i]);
  }
}

}  // namespace
}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
