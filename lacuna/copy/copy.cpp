// Plain fast paths: one kernel for each strip, chosen by block size. A block of a size that the table lists is moved by a
// memcpy of constant length, which the compiler turns into a few register moves; any other size calls memcpy.
#include "lacuna/copy/copy.hpp"

#include <algorithm>
#include <cstring>

namespace lacuna::copy {
namespace {

using layout::Strip;

// Both directions of one copy: `Pack` moves scattered -> dense, otherwise dense -> scattered.
template <bool Pack>
struct Direction {
  using Scattered = std::conditional_t<Pack, const std::byte, std::byte>;
  using Dense = std::conditional_t<Pack, std::byte, const std::byte>;
  template <class Length>
  static void move(Scattered* scattered, Dense* dense, Length length) {
    if constexpr (Pack) {
      std::memcpy(dense, scattered, static_cast<std::size_t>(length));
    } else {
      std::memcpy(scattered, dense, static_cast<std::size_t>(length));
    }
  }
};

template <class D>
using Kernel = void (*)(const Strip&, typename D::Scattered*, typename D::Dense*);

// Bytes == 0: the length is the strip's. The counter is not a pointer comparison, so strides may be zero or negative.
template <class D, std::int64_t Bytes>
void move_strip(const Strip& strip, typename D::Scattered* base, typename D::Dense* dense) {
  const std::int64_t length = Bytes == 0 ? strip.length : Bytes;
  if (strip.offsets == nullptr) {
    for (std::int64_t i = 0; i < strip.count; ++i) D::move(base + i * strip.stride, dense + i * length, length);
  } else if (strip.starts == nullptr) {
    for (std::int64_t i = 0; i < strip.count; ++i) D::move(base + strip.offsets[i], dense + i * length, length);
  } else {
    for (std::int64_t i = 0; i < strip.count; ++i)
      D::move(base + strip.offsets[i], dense + strip.starts[i] - strip.starts[0], strip.starts[i + 1] - strip.starts[i]);
  }
}

// Sizes of one to eight floats or doubles, DDTBench's small structs, and a cache line.
constexpr std::int64_t kFixedSizes[] = {1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 64};

template <class D, std::size_t I = 0>
Kernel<D> kernel_for(std::int64_t length) {
  if constexpr (I < std::size(kFixedSizes)) {
    return length == kFixedSizes[I] ? &move_strip<D, kFixedSizes[I]> : kernel_for<D, I + 1>(length);
  } else {
    return &move_strip<D, 0>;
  }
}

template <bool Pack>
void move_fragment(const Layout& layout, typename Direction<Pack>::Scattered* base, std::int64_t position, std::int64_t length,
                   typename Direction<Pack>::Dense* dense) {
  using D = Direction<Pack>;
  layout::Cursor cursor(layout);
  if (position != 0) cursor.seek(position);
  std::int64_t kernel_length = 0;
  Kernel<D> kernel = kernel_for<D>(0);
  while (length > 0) {
    const Strip strip = cursor.next(length);
    const std::int64_t bytes = strip.bytes();
    if (strip.count == 1) {
      D::move(base + strip.run(0).offset, dense, bytes);
    } else {
      const std::int64_t wanted = strip.starts == nullptr ? strip.length : 0;
      if (wanted != kernel_length) kernel = kernel_for<D>(kernel_length = wanted);
      kernel(strip, base + strip.offset, dense);
    }
    dense += bytes;
    length -= bytes;
  }
}

}  // namespace

void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  move_fragment<true>(layout, base, position, length, out);
}

void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  move_fragment<false>(layout, base, position, length, in);
}

base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base) {
  layout::Intersection pieces = LACUNA_TRY(layout::Intersection::of(src, dst));
  if (src.contiguous_bytes() && src.size() > 0) {
    unpack(dst, dst_base, 0, dst.size(), src_base + src.true_lower_bound());
    return {};
  }
  if (dst.contiguous_bytes() && dst.size() > 0) {
    pack(src, src_base, 0, src.size(), dst_base + dst.true_lower_bound());
    return {};
  }
  while (!pieces.done()) {
    const layout::Piece piece = pieces.next();
    std::memcpy(dst_base + piece.dst, src_base + piece.src, static_cast<std::size_t>(piece.length));
  }
  return {};
}

}  // namespace lacuna::copy
