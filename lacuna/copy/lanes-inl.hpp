// Lanes of 16 bytes, whose permutations leave zero where the order asks for no byte; and parts of lanes, of which no
// other byte is stored. Included once for each instruction set, into its namespace. Defines LACUNA_LANES to 0 where
// there is no such permutation.
#if defined(LACUNA_COPY_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LACUNA_COPY_LANES_INL
#undef LACUNA_COPY_LANES_INL
#else
#define LACUNA_COPY_LANES_INL
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lacuna/copy/kernels.hpp"
#if HWY_ARCH_ARM_A64
#include <arm_neon.h>
#endif

#undef LACUNA_LANES
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM_A64
#define LACUNA_LANES 1

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

// Intrinsics, for the zero where an order asks for no byte.
#if HWY_ARCH_X86
using Lane = __m128i;
HWY_INLINE Lane load_lane(const void* from) { return _mm_loadu_si128(static_cast<const Lane*>(from)); }
HWY_INLINE Lane permuted(Lane v, Lane order) { return _mm_shuffle_epi8(v, order); }
HWY_INLINE Lane united(Lane a, Lane b) { return _mm_or_si128(a, b); }
#else
using Lane = uint8x16_t;
HWY_INLINE Lane load_lane(const void* from) { return vld1q_u8(static_cast<const std::uint8_t*>(from)); }
HWY_INLINE Lane permuted(Lane v, Lane order) { return vqtbl1q_u8(v, order); }
HWY_INLINE Lane united(Lane a, Lane b) { return vorrq_u8(a, b); }
#endif

HWY_NOINLINE Lane load_part(const std::byte* from, std::int64_t bytes) {
  alignas(Lane) std::byte lane[sizeof(Lane)] = {};
  std::memcpy(lane, from, static_cast<std::size_t>(bytes));
  return load_lane(lane);
}
// The first `bytes` of a lane, and others behind them; but no byte of a page that has none of the first.
HWY_INLINE Lane load_near_page_end(const std::byte* from, std::int64_t bytes) {
  return HWY_LIKELY(in_one_page(from, sizeof(Lane))) ? load_lane(from) : load_part(from, bytes);
}

// A part of a lane is stored as two words that overlap: its first bytes are in one, its last ones in the next.
template <class Word>
HWY_INLINE void store_two(Lane v, std::byte* to, std::int64_t bytes) {
  Word words[sizeof v / sizeof(Word)];
  std::memcpy(words, &v, sizeof v);
  std::memcpy(to, words, sizeof(Word));
  std::memcpy(to + bytes - sizeof(Word), words + 1, sizeof(Word));
}
HWY_INLINE void store_words(Lane v, std::byte* to, std::int64_t bytes) {
  if (bytes >= 8) return store_two<std::uint64_t>(v, to, bytes);
  if (bytes >= 4) return store_two<std::uint32_t>(v, to, bytes);
  if (bytes >= 2) return store_two<std::uint16_t>(v, to, bytes);
  std::memcpy(to, &v, 1);
}

}  // namespace
}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#else
#define LACUNA_LANES 0
#endif

#endif  // per target
