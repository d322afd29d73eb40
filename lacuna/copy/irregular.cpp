// Blocks of many lengths, and single ones.
#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lacuna/copy/kernels.hpp"

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/irregular.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/copy/blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// Any length up to 64 is one masked load and one masked store: no branch that random lengths could mislead.
HWY_INLINE void move_short(Index length, const std::byte* from, std::byte* to) {
  const hn::FixedTag<std::uint8_t, 64> d;
  hn::MFromD<decltype(d)> mask;
  mask.raw = _bzhi_u64(~std::uint64_t{0}, static_cast<std::uint64_t>(length));  // FirstN() has a branch
  hn::BlendedStore(hn::MaskedLoad(mask, d, reinterpret_cast<const std::uint8_t*>(from)), mask, d, reinterpret_cast<std::uint8_t*>(to));
}
#else
HWY_INLINE void move_short(Index length, const std::byte* from, std::byte* to) {
  if (length >= 32) return Several<Halves, 2>::move(length, from, to);
  if (length >= 16) return Pair<Word<16>, 16>::move(length, from, to);
  if (length >= 8) return Pair<Word<8>, 8>::move(length, from, to);
  if (length >= 4) return Pair<Word<4>, 4>::move(length, from, to);
  if (length >= 2) return Pair<Word<2>, 2>::move(length, from, to);
  if (length == 1) *to = *from;
}
#endif

// One of blocks that are `all` bytes together.
HWY_INLINE void move_any(Index length, Index all, const std::byte* from, std::byte* to) {
  if (length <= 64) return move_short(length, from, to);
  Long::move(length, from, to, Long::by_memcpy(length, all));
}

enum class Dense : std::uint8_t { from, to, neither };

template <Dense D>
void move_irregular(const Irregular& blocks, const std::int64_t* to_offsets, const std::byte* HWY_RESTRICT from,
                    std::byte* HWY_RESTRICT to) {
  const Irregular b = blocks;
  const Index origin = b.starts[0];
  const Index all = b.starts[b.count] - origin;
  for (Index i = 0; i < b.count; ++i) {
    const Index dense = b.starts[i] - origin;
    const std::byte* f = from + (D == Dense::from ? dense : b.offsets[i]);
    std::byte* t = to + (D == Dense::to ? dense : D == Dense::from ? b.offsets[i] : to_offsets[i]);
    move_any(b.starts[i + 1] - b.starts[i], all, f, t);
  }
}
void pack_irregular(const Irregular& blocks, const std::byte* from, std::byte* to) { move_irregular<Dense::to>(blocks, nullptr, from, to); }
void unpack_irregular(const Irregular& blocks, const std::byte* from, std::byte* to) {
  move_irregular<Dense::from>(blocks, nullptr, from, to);
}

}  // namespace

IrregularKernel FindIrregular() {
  return {.pack = &pack_irregular,
          .unpack = &unpack_irregular,
          .move = &move_irregular<Dense::neither>,
          .name = HWY_TARGET <= HWY_AVX3 ? "masked to their lengths" : "by their lengths"};
}

void CopyBlock(std::byte* to, const std::byte* from, std::int64_t bytes, bool stream) {
  if (stream && bytes >= kLongBlock) {
    Streamed::move(bytes, from, to);
  } else {
    move_any(bytes, bytes, from, to);
  }
}

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindIrregular);
HWY_EXPORT(CopyBlock);

IrregularKernel irregular_kernel() { return HWY_DYNAMIC_DISPATCH(FindIrregular)(); }
void copy_block(std::byte* to, const std::byte* from, std::int64_t bytes, bool stream) {
  HWY_DYNAMIC_DISPATCH(CopyBlock)(to, from, bytes, stream);
}

}  // namespace lacuna::copy
#endif
