#include "lacuna/copy/windows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/windows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
namespace {

// Highway 1.0 has no permutation of bytes across a vector, no compression of bytes and no expansion, hence the
// intrinsics.
using Index = std::int64_t;

__mmask64 first_bytes(Index bytes) { return bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1; }

// Windows of 16, 32 or 64 bytes: a narrow one crosses fewer cache lines.
struct Width16 {
  using V = __m128i;
  static constexpr Index bytes = 16;
  static V load(const void* from) { return _mm_loadu_si128(static_cast<const V*>(from)); }
  static V load(__mmask64 mask, const void* from) { return _mm_maskz_loadu_epi8(static_cast<__mmask16>(mask), from); }
  static V permute(V order, V v) { return _mm_permutexvar_epi8(order, v); }
  static void store(void* to, V v) { _mm_storeu_si128(static_cast<V*>(to), v); }
  static void store(void* to, __mmask64 mask, V v) { _mm_mask_storeu_epi8(to, static_cast<__mmask16>(mask), v); }
};
struct Width32 {
  using V = __m256i;
  static constexpr Index bytes = 32;
  static V load(const void* from) { return _mm256_loadu_si256(static_cast<const V*>(from)); }
  static V load(__mmask64 mask, const void* from) { return _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from); }
  static V permute(V order, V v) { return _mm256_permutexvar_epi8(order, v); }
  static void store(void* to, V v) { _mm256_storeu_si256(static_cast<V*>(to), v); }
  static void store(void* to, __mmask64 mask, V v) { _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(mask), v); }
};
struct Width64 {
  using V = __m512i;
  static constexpr Index bytes = 64;
  static V load(const void* from) { return _mm512_loadu_si512(from); }
  static V load(__mmask64 mask, const void* from) { return _mm512_maskz_loadu_epi8(mask, from); }
  static V permute(V order, V v) { return _mm512_permutexvar_epi8(order, v); }
  static void store(void* to, V v) { _mm512_storeu_si512(to, v); }
  static void store(void* to, __mmask64 mask, V v) { _mm512_mask_storeu_epi8(to, mask, v); }
};

// Where windows are. Apart: a stride apart so that no two share a byte, and in no cache.
enum class Places : std::uint8_t { stride, apart, list };

template <Places P>
Index place(const Pattern& p, const std::int32_t* offsets, Index i) {
  return p.low + (P == Places::list ? offsets[i] : i * p.stride);
}

// The more often a line is touched, the earlier the CPU asks for those behind it.
template <class W, Places P>
void touch(const std::byte* window) {
  if constexpr (P == Places::apart) {
    for (const Index at : {Index{0}, W::bytes / 2}) {
      std::uint64_t value = 0;
      std::memcpy(&value, window + at, sizeof value);
      asm volatile("" : : "r"(value));
    }
  }
}

// How many of `windows` may be stored to, or loaded from, the dense side in full width: behind the others there are too
// few bytes.
template <class W>
Index in_full_width(const Pattern& p, Index windows) {
  return std::max<Index>(0, windows - (W::bytes - 1) / p.payload);
}

// Full stores reach into the next window's dense bytes, which come later.
template <class W, class Store, Places P>
void pack_pattern(const Pattern& pattern, const std::int32_t* offsets, Index windows, const std::byte* HWY_RESTRICT scattered,
                  std::byte* HWY_RESTRICT dense) {
  const Pattern p = pattern;
  const auto order = W::load(p.to_dense);
  const auto window = [&](Index i) { return W::permute(order, W::load(p.mask, scattered + place<P>(p, offsets, i))); };
  const auto store = [](std::byte* to, const auto& v) { Store::store(to, *reinterpret_cast<const typename Store::V*>(&v)); };
  const Index full = in_full_width<Store>(p, windows);
  Index i = 0;
  if constexpr (P != Places::list) {
    const Index whole = std::min(full, whole_vectors(windows, p.stride, W::bytes));
#pragma GCC unroll 4
    for (; i < whole; ++i, dense += p.payload) {
      const std::byte* from = scattered + place<P>(p, offsets, i);
      touch<W, P>(from);
      store(dense, W::permute(order, W::load(from)));
    }
  }
#pragma GCC unroll 4
  for (; i < full; ++i, dense += p.payload) store(dense, window(i));
  const __mmask64 exact = first_bytes(p.payload);
  for (; i < windows; ++i, dense += p.payload) W::store(dense, exact, window(i));
}

template <class W, Places P>
void unpack_pattern(const Pattern& pattern, const std::int32_t* offsets, Index windows, std::byte* HWY_RESTRICT scattered,
                    const std::byte* HWY_RESTRICT dense) {
  const Pattern p = pattern;
  const auto order = W::load(p.to_scattered);
  const Index full = in_full_width<W>(p, windows);
  Index i = 0;
  if constexpr (P == Places::apart) {
    const Index whole = std::min(full, whole_vectors(windows, p.stride, W::bytes));
#pragma GCC unroll 4
    for (; i < whole; ++i, dense += p.payload) {
      std::byte* to = scattered + place<P>(p, offsets, i);
      touch<W, P>(to);
      W::store(to, p.mask, W::permute(order, W::load(dense)));
    }
  }
#pragma GCC unroll 4
  for (; i < full; ++i, dense += p.payload) W::store(scattered + place<P>(p, offsets, i), p.mask, W::permute(order, W::load(dense)));
  const __mmask64 exact = first_bytes(p.payload);
  for (; i < windows; ++i, dense += p.payload)
    W::store(scattered + place<P>(p, offsets, i), p.mask, W::permute(order, W::load(exact, dense)));
}

template <class W, Places From, Places To>
void move_pattern(const Pattern& from, const std::int32_t* from_offsets, const Pattern& to, const std::int32_t* to_offsets, Index windows,
                  const std::byte* HWY_RESTRICT source, std::byte* HWY_RESTRICT target) {
  const Pattern a = from;
  const Pattern b = to;
  const auto gathered = W::load(a.to_dense);
  const auto scattered = W::load(b.to_scattered);
  const auto move = [&](Index i, const auto& window) {
    W::store(target + place<To>(b, to_offsets, i), b.mask, W::permute(scattered, W::permute(gathered, window)));
  };
  Index i = 0;
  if constexpr (From != Places::list) {
    const Index whole = whole_vectors(windows, a.stride, W::bytes);
#pragma GCC unroll 2
    for (; i < whole; ++i) move(i, W::load(source + a.low + i * a.stride));
  }
#pragma GCC unroll 2
  for (; i < windows; ++i) move(i, W::load(a.mask, source + place<From>(a, from_offsets, i)));
}
template <Places From, Places To>
void move_any(const Pattern& from, const std::int32_t* from_offsets, const Pattern& to, const std::int32_t* to_offsets, Index windows,
              const std::byte* source, std::byte* target) {
  const Index width = std::max(from.width, to.width);
  const auto run = width <= 16   ? &move_pattern<Width16, From, To>
                   : width <= 32 ? &move_pattern<Width32, From, To>
                                 : &move_pattern<Width64, From, To>;
  run(from, from_offsets, to, to_offsets, windows, source, target);
}
void move_windows(const Pattern& from, const std::int32_t* from_offsets, const Pattern& to, const std::int32_t* to_offsets, Index windows,
                  const std::byte* source, std::byte* target) {
  using enum Places;
  const auto run = from_offsets != nullptr ? (to_offsets != nullptr ? &move_any<list, list> : &move_any<list, stride>)
                                           : (to_offsets != nullptr ? &move_any<stride, list> : &move_any<stride, stride>);
  run(from, from_offsets, to, to_offsets, windows, source, target);
}

void pack_masks(const Masks& masks, Index first, Index last, const std::byte* HWY_RESTRICT scattered, std::byte* HWY_RESTRICT dense) {
  const std::int32_t* offsets = masks.offsets.data();
  const std::uint64_t* bits = masks.masks.data();
  const std::byte* end = dense + (masks.starts[static_cast<std::size_t>(last)] - masks.starts[static_cast<std::size_t>(first)]);
  for (Index i = first; i < last; ++i) {
    const __m512i v = _mm512_maskz_compress_epi8(bits[i], _mm512_maskz_loadu_epi8(bits[i], scattered + offsets[i]));
    const Index bytes = std::popcount(bits[i]);
    if (end - dense >= 64) {
      _mm512_storeu_si512(dense, v);
    } else {
      _mm512_mask_storeu_epi8(dense, first_bytes(bytes), v);
    }
    dense += bytes;
  }
}

void unpack_masks(const Masks& masks, Index first, Index last, std::byte* HWY_RESTRICT scattered, const std::byte* HWY_RESTRICT dense) {
  const std::int32_t* offsets = masks.offsets.data();
  const std::uint64_t* bits = masks.masks.data();
  const std::byte* end = dense + (masks.starts[static_cast<std::size_t>(last)] - masks.starts[static_cast<std::size_t>(first)]);
  for (Index i = first; i < last; ++i) {
    const Index bytes = std::popcount(bits[i]);
    const __m512i v = end - dense >= 64 ? _mm512_loadu_si512(dense) : _mm512_maskz_loadu_epi8(first_bytes(bytes), dense);
    _mm512_mask_storeu_epi8(scattered + offsets[i], bits[i], _mm512_maskz_expand_epi8(bits[i], v));
    dense += bytes;
  }
}

template <Places P>
void pack_any(const Pattern& p, const std::int32_t* offsets, Index windows, const std::byte* scattered, std::byte* dense) {
  if (p.width <= 16) return pack_pattern<Width16, Width16, P>(p, offsets, windows, scattered, dense);
  if (p.width <= 32) return pack_pattern<Width32, Width32, P>(p, offsets, windows, scattered, dense);
  if (p.payload <= 32) return pack_pattern<Width64, Width32, P>(p, offsets, windows, scattered, dense);
  pack_pattern<Width64, Width64, P>(p, offsets, windows, scattered, dense);
}
template <Places P>
void unpack_any(const Pattern& p, const std::int32_t* offsets, Index windows, std::byte* scattered, const std::byte* dense) {
  if (p.width <= 16) return unpack_pattern<Width16, P>(p, offsets, windows, scattered, dense);
  if (p.width <= 32) return unpack_pattern<Width32, P>(p, offsets, windows, scattered, dense);
  unpack_pattern<Width64, P>(p, offsets, windows, scattered, dense);
}
// A load of what a store with a mask has just written, or left out, waits for the store.
Places places_of(const Pattern& p, const std::int32_t* offsets, bool cold) {
  if (offsets != nullptr) return Places::list;
  return cold && p.stride >= (p.width <= 32 ? 32 : 64) ? Places::apart : Places::stride;
}
void pack_windows(const Pattern& p, const std::int32_t* offsets, Index windows, const std::byte* scattered, std::byte* dense, bool cold) {
  using enum Places;
  const Places places = places_of(p, offsets, cold);
  const auto run = places == list ? &pack_any<list> : places == stride ? &pack_any<stride> : &pack_any<apart>;
  run(p, offsets, windows, scattered, dense);
}
void unpack_windows(const Pattern& p, const std::int32_t* offsets, Index windows, std::byte* scattered, const std::byte* dense, bool cold) {
  using enum Places;
  const Places places = places_of(p, offsets, cold);
  const auto run = places == list ? &unpack_any<list> : places == stride ? &unpack_any<stride> : &unpack_any<apart>;
  run(p, offsets, windows, scattered, dense);
}

constexpr WindowKernels kKernels{&pack_windows, &unpack_windows, &move_windows, &pack_masks, &unpack_masks};

}  // namespace

const WindowKernels* FindWindows() { return &kKernels; }
#else
const WindowKernels* FindWindows() { return nullptr; }
#endif

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindWindows);
const WindowKernels* window_kernels() { return HWY_DYNAMIC_DISPATCH(FindWindows)(); }

std::optional<Pattern> pattern_of(std::span<const WindowRun> runs, std::int64_t stride, std::int64_t count) {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();
  std::int64_t bytes = 0;
  for (const WindowRun& run : runs) {
    low = std::min(low, run.offset);
    high = std::max(high, run.offset + run.length);
    bytes += run.length;
  }
  if (bytes == 0 || high - low > 64 || bytes > 64) return std::nullopt;
  const std::int64_t step = std::abs(stride);
  const std::int64_t entries = step == 0 ? 1 : std::min({(64 - (high - low)) / step + 1, 64 / bytes, count});
  Pattern p;
  p.width = high - low + (entries - 1) * step;
  p.low = std::min(low, low + (entries - 1) * stride);
  p.payload = entries * bytes;
  p.entries = entries;
  p.stride = entries * stride;
  int dense = 0;
  for (std::int64_t e = 0; e < entries; ++e) {
    for (const WindowRun& run : runs) {
      for (std::int64_t b = 0; b < run.length; ++b, ++dense) {
        const auto place = static_cast<std::size_t>(e * stride + run.offset + b - p.low);
        const std::uint64_t bit = std::uint64_t{1} << place;
        if ((p.mask & bit) != 0) return std::nullopt;
        p.mask |= bit;
        p.to_dense[dense] = static_cast<std::uint8_t>(place);
        p.to_scattered[place] = static_cast<std::uint8_t>(dense);
      }
    }
  }
  return p;
}

bool Masks::add(std::int64_t offset, std::int64_t length) {
  if (starts.empty()) starts.push_back(0);
  while (length > 0) {
    const bool fits = !masks.empty() && offset > offsets.back() && offset - offsets.back() < 64 &&
                      static_cast<std::int64_t>(std::bit_width(masks.back())) <= offset - offsets.back();
    if (!fits) {
      if (offset < std::numeric_limits<std::int32_t>::min() || offset > std::numeric_limits<std::int32_t>::max()) return false;
      offsets.push_back(static_cast<std::int32_t>(offset));
      masks.push_back(0);
      starts.push_back(starts.back());
    }
    const std::int64_t at = offset - offsets.back();
    const std::int64_t bytes = std::min(length, 64 - at);
    masks.back() |= (bytes == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1) << at;
    starts.back() += bytes;
    offset += bytes;
    length -= bytes;
  }
  return true;
}

}  // namespace lacuna::copy
#endif
