#include "lacuna/copy/tiles.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Index = std::int64_t;

// The compiler's vectors, for their shuffles of any two by constants; as wide as the instruction set's.
constexpr int kWidth = HWY_TARGET <= HWY_AVX3 ? 64 : HWY_TARGET <= HWY_AVX2 ? 32 : 16;

template <class T>
struct Square {
  static constexpr int kSide = kWidth / static_cast<int>(sizeof(T));
  using Vector __attribute__((vector_size(kWidth))) = T;
  Vector row[kSide];
};
// 16 bytes have no element type of their own: pairs.
struct Pair16 {
  std::uint64_t low, high;
};
template <>
struct Square<Pair16> {
  static constexpr int kSide = kWidth / 16;
  using Vector __attribute__((vector_size(kWidth))) = std::uint64_t;
  Vector row[kSide];
};

// One exchange of a butterfly: of each pair of squares of `Half` elements off the diagonal, the two change places. `Lanes` vector elements make an element.
template <int Half, int Lanes, bool Second, std::size_t... I>
auto exchanged(auto a, auto b, std::index_sequence<I...>) {
  constexpr int n = sizeof...(I);
  const auto from = [](int lane) constexpr {
    const int element = lane / Lanes;
    const int place = lane % Lanes;
    const bool upper = (element & Half) != 0;
    const int source = Second ? (upper ? element : element + Half) : (upper ? element - Half : element);
    return (upper ? n : 0) + source * Lanes + place;
  };
  return __builtin_shufflevector(a, b, from(static_cast<int>(I))...);
}

template <class T, int Half>
void butterfly(Square<T>& square) {
  if constexpr (Half > 0) {
    constexpr int lanes = sizeof(T) == 16 ? 2 : 1;
    using Lanes = std::make_index_sequence<static_cast<std::size_t>(Square<T>::kSide * lanes)>;
#pragma GCC unroll 16
    for (int i = 0; i < Square<T>::kSide; ++i) {
      if ((i & Half) != 0) continue;
      const auto a = square.row[i];
      const auto b = square.row[i + Half];
      square.row[i] = exchanged<Half, lanes, false>(a, b, Lanes());
      square.row[i + Half] = exchanged<Half, lanes, true>(a, b, Lanes());
    }
    butterfly<T, Half / 2>(square);
  }
}

template <class T, bool Stream>
void move_square(const std::byte* from, Index from_step, std::byte* to, Index to_step) {
  Square<T> square;
  constexpr int side = Square<T>::kSide;
#pragma GCC unroll 16
  for (int i = 0; i < side; ++i) std::memcpy(&square.row[i], from + i * from_step, kWidth);
  butterfly<T, side / 2>(square);
#pragma GCC unroll 16
  for (int i = 0; i < side; ++i) {
    if constexpr (Stream) {
      const hn::CappedTag<std::uint8_t, kWidth> d;
      hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(&square.row[i])), d, reinterpret_cast<std::uint8_t*>(to + i * to_step));
    } else {
      std::memcpy(to + i * to_step, &square.row[i], kWidth);
    }
  }
}

template <class T>
void move_singly(const Move& m, const std::byte* from, std::byte* to, Index r0, Index r1, Index c0, Index c1) {
  for (Index c = c0; c < c1; ++c) {
    for (Index r = r0; r < r1; ++r) {
      T value;
      std::memcpy(&value, from + r * m.from.outer + c * m.from.stride, sizeof value);
      std::memcpy(to + r * m.to.outer + c * m.to.stride, &value, sizeof value);
    }
  }
}

template <class T, bool Stream>
void move_tiles(const Move& move, const std::byte* HWY_RESTRICT from, std::byte* HWY_RESTRICT to) {
  constexpr Index length = sizeof(T);
  constexpr Index side = Square<T>::kSide;
  constexpr Index kColumns = 64;  // lines of side A at a time, each on a page of its own: as many as a first-level TLB holds
  constexpr Index kRows = 4 * side;
  const Move m = move;
  const bool to_is_a = m.to.outer == length && m.from.stride == length;
  if (!to_is_a && !(m.from.outer == length && m.to.stride == length)) return move_singly<T>(m, from, to, 0, m.rows, 0, m.count);
  // Rows before the first line of side A that begins with one: stores of whole lines, or none that two lines share.
  const auto a = reinterpret_cast<std::intptr_t>(to_is_a ? to : static_cast<const std::byte*>(from));
  const Index skew = -a & 63;
  const Index head = skew % length == 0 ? std::min(skew / length, m.rows) : 0;
  const bool aligned = (skew % length == 0) && m.to.stride % 64 == 0;
  move_singly<T>(m, from, to, 0, head, 0, m.count);
  const Index rows_end = head + (m.rows - head) / side * side;
  for (Index r0 = head; r0 < rows_end; r0 += kRows) {
    const Index r1 = std::min(r0 + kRows, rows_end);
    for (Index c0 = 0; c0 < m.count; c0 += kColumns) {
      const Index c1 = std::min(c0 + kColumns, m.count);
      const Index columns_end = c0 + (c1 - c0) / side * side;
      for (Index c = c0; c < columns_end; c += side) {
        for (Index r = r0; r < r1; r += side) {
          const std::byte* f = from + r * m.from.outer + c * m.from.stride;
          std::byte* t = to + r * m.to.outer + c * m.to.stride;
          const Index from_step = to_is_a ? m.from.outer : m.from.stride;
          const Index to_step = to_is_a ? m.to.stride : m.to.outer;
          if constexpr (Stream) {
            if (to_is_a && aligned) {
              move_square<T, true>(f, from_step, t, to_step);
              continue;
            }
          }
          move_square<T, false>(f, from_step, t, to_step);
        }
      }
      move_singly<T>(m, from, to, r0, r1, columns_end, c1);
    }
  }
  move_singly<T>(m, from, to, rows_end, m.rows, 0, m.count);
}

template <bool Stream>
Run tiles_of(std::int64_t length) {
  if (length == 4) return &move_tiles<std::uint32_t, Stream>;
  if (length == 8) return &move_tiles<std::uint64_t, Stream>;
  return length == 16 ? &move_tiles<Pair16, Stream> : nullptr;
}

}  // namespace

Run FindTiles(std::int64_t length, bool stream) {
  if constexpr (kWidth == 64) {  // streamed stores that make no line are worse than none
    if (stream) return tiles_of<true>(length);
  }
  return tiles_of<false>(length);
}

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindTiles);
Run tile_kernel(std::int64_t length, bool stream) { return HWY_DYNAMIC_DISPATCH(FindTiles)(length, stream); }

}  // namespace lacuna::copy
#endif
