#include "lacuna/copy/windows.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

// Only this instruction set has what it takes.
#define HWY_WANT_AVX3_DL
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/windows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL
namespace {

// Highway 1.0 has no permutation of bytes across a vector, no compression of bytes and no expansion, hence the intrinsics.
using Index = std::int64_t;

template <bool Listed>
Index place(const Pattern& p, const std::int32_t* offsets, Index i) {
  return p.low + (Listed ? offsets[i] : i * p.stride);
}

__mmask64 first_bytes(Index bytes) { return bytes >= 64 ? ~__mmask64{0} : (__mmask64{1} << bytes) - 1; }

// Whole stores that reach into the next window's dense bytes, which come later; the last windows are stored exactly.
template <bool Listed, bool Narrow>
void pack_pattern(const Pattern& pattern, const std::int32_t* offsets, Index windows, const std::byte* HWY_RESTRICT scattered,
                  std::byte* HWY_RESTRICT dense) {
  constexpr Index width = Narrow ? 32 : 64;
  const Pattern p = pattern;
  const __m512i order = _mm512_load_si512(p.to_dense);
  const Index whole = std::max<Index>(0, windows - (width - 1) / p.payload);
  Index i = 0;
#pragma GCC unroll 2
  for (; i < whole; ++i, dense += p.payload) {
    const __m512i v = _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(p.mask, scattered + place<Listed>(p, offsets, i)));
    if constexpr (Narrow) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dense), _mm512_castsi512_si256(v));
    } else {
      _mm512_storeu_si512(dense, v);
    }
  }
  const __mmask64 exact = first_bytes(p.payload);
  for (; i < windows; ++i, dense += p.payload) {
    const __m512i v = _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(p.mask, scattered + place<Listed>(p, offsets, i)));
    _mm512_mask_storeu_epi8(dense, exact, v);
  }
}

template <bool Listed>
void unpack_pattern(const Pattern& pattern, const std::int32_t* offsets, Index windows, std::byte* HWY_RESTRICT scattered,
                    const std::byte* HWY_RESTRICT dense) {
  const Pattern p = pattern;
  const __m512i order = _mm512_load_si512(p.to_scattered);
  const Index whole = std::max<Index>(0, windows - 63 / p.payload);
  Index i = 0;
#pragma GCC unroll 2
  for (; i < whole; ++i, dense += p.payload) {
    const __m512i v = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(dense));
    _mm512_mask_storeu_epi8(scattered + place<Listed>(p, offsets, i), p.mask, v);
  }
  const __mmask64 exact = first_bytes(p.payload);
  for (; i < windows; ++i, dense += p.payload) {
    const __m512i v = _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(exact, dense));
    _mm512_mask_storeu_epi8(scattered + place<Listed>(p, offsets, i), p.mask, v);
  }
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

void pack_any(const Pattern& p, const std::int32_t* offsets, Index windows, const std::byte* scattered, std::byte* dense) {
  if (p.payload <= 32) {
    offsets != nullptr ? pack_pattern<true, true>(p, offsets, windows, scattered, dense)
                       : pack_pattern<false, true>(p, offsets, windows, scattered, dense);
  } else {
    offsets != nullptr ? pack_pattern<true, false>(p, offsets, windows, scattered, dense)
                       : pack_pattern<false, false>(p, offsets, windows, scattered, dense);
  }
}
void unpack_any(const Pattern& p, const std::int32_t* offsets, Index windows, std::byte* scattered, const std::byte* dense) {
  offsets != nullptr ? unpack_pattern<true>(p, offsets, windows, scattered, dense)
                     : unpack_pattern<false>(p, offsets, windows, scattered, dense);
}

constexpr WindowKernels kKernels{&pack_any, &unpack_any, &pack_masks, &unpack_masks};

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

std::optional<Pattern> pattern_of(std::span<const Place> runs, std::int64_t stride, std::int64_t count) {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();
  std::int64_t bytes = 0;
  for (const Place& run : runs) {
    low = std::min(low, run.offset);
    high = std::max(high, run.offset + run.length);
    bytes += run.length;
  }
  if (high - low > 64 || bytes > 64) return std::nullopt;
  const std::int64_t step = std::abs(stride);
  const std::int64_t entries = step == 0 ? 1 : std::min({(64 - (high - low)) / step + 1, 64 / bytes, count});
  Pattern p{.low = std::min(low, low + (entries - 1) * stride), .payload = entries * bytes, .entries = entries, .stride = entries * stride};
  int dense = 0;
  for (std::int64_t e = 0; e < entries; ++e) {
    for (const Place& run : runs) {
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
