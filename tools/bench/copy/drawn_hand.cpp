// The loops by hand for drawn layouts: the packed side in its order, the other one where the loops lead.
#include <cstring>
#include <stdexcept>

#include "tools/bench/copy/drawn.hpp"

#define RESTRICT __restrict

namespace lacuna::bench {
namespace {

using Index = std::int64_t;

// Records may put a number at any address, so no type claims an alignment.
template <class T>
struct __attribute__((packed, may_alias)) Number {
  T value;
};
template <int Bytes>
struct Block {
  std::uint8_t bytes[Bytes];
};

// One element, `Pack` says which way.
template <bool Pack, class T, class S, class D>
void move_one(S* scattered, D* dense) {
  if constexpr (std::is_class_v<T>) {
    if constexpr (Pack) {
      std::memcpy(dense, scattered, sizeof(T));
    } else {
      std::memcpy(scattered, dense, sizeof(T));
    }
  } else if constexpr (Pack) {
    reinterpret_cast<Number<T>*>(dense)->value = reinterpret_cast<const Number<T>*>(scattered)->value;
  } else {
    reinterpret_cast<Number<T>*>(scattered)->value = reinterpret_cast<const Number<T>*>(dense)->value;
  }
}
template <bool Pack, class S, class D>
void move_block(S* scattered, D* dense, Index bytes) {
  if constexpr (Pack) {
    std::memcpy(dense, scattered, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(scattered, dense, static_cast<std::size_t>(bytes));
  }
}

// The innermost loop; both places are apart.
template <bool Pack, class T, Form form, class S, class D>
D* move_row(const DrawnNest::Loop& loop, S* RESTRICT row, D* RESTRICT dense) {
  constexpr Index size = sizeof(T);
  const Index count = loop.count;
  if (loop.stride == size) {
    if constexpr (form == Form::memcpy) {
      move_block<Pack>(row, dense, count * size);
    } else {
      for (Index i = 0; i < count; ++i) move_one<Pack, T>(row + i * size, dense + i * size);
    }
  } else {
    const Index stride = loop.stride;
    for (Index i = 0; i < count; ++i) move_one<Pack, T>(row + i * stride, dense + i * size);
  }
  return dense + count * size;
}

template <bool Pack, class T, Form form, class S, class D>
D* move_loops(const DrawnNest& n, S* scattered, D* dense) {
  const auto& l = n.loops;
  for (Index i0 = 0; i0 < l[0].count; ++i0)
    for (Index i1 = 0; i1 < l[1].count; ++i1)
      for (Index i2 = 0; i2 < l[2].count; ++i2)
        for (Index i3 = 0; i3 < l[3].count; ++i3)
          dense =
              move_row<Pack, T, form>(l[4], scattered + i0 * l[0].stride + i1 * l[1].stride + i2 * l[2].stride + i3 * l[3].stride, dense);
  return dense;
}

template <bool Pack, class T, Form form, class S, class D>
D* move_list(const DrawnNest& n, S* RESTRICT scattered, D* RESTRICT dense) {
  constexpr Index size = sizeof(T);
  const std::int32_t* RESTRICT list = n.list.data();
  const auto count = static_cast<Index>(n.list.size());
  if (n.lengths.size() == 1 && n.lengths[0] == 1) {
    for (Index i = 0; i < count; ++i) move_one<Pack, T>(scattered + list[i] * size, dense + i * size);
    return dense + count * size;
  }
  const std::int32_t* RESTRICT lengths = n.lengths.data();
  const bool even = n.lengths.size() == 1;
  for (Index i = 0; i < count; ++i) dense = move_row<Pack, T, form>({lengths[even ? 0 : i], size}, scattered + list[i] * size, dense);
  return dense;
}

template <bool Pack, class T, class S, class D>
D* move_nest(const DrawnNest& n, Form form, S* scattered, D* dense) {
  const bool blocks = form == Form::memcpy;
  if (!n.list.empty())
    return blocks ? move_list<Pack, T, Form::memcpy>(n, scattered, dense) : move_list<Pack, T, Form::elements>(n, scattered, dense);
  return blocks ? move_loops<Pack, T, Form::memcpy>(n, scattered, dense) : move_loops<Pack, T, Form::elements>(n, scattered, dense);
}

template <bool Pack, class S, class D>
void move_nests(const std::vector<DrawnNest>& nests, Form form, S* base, D* dense) {
  for (const DrawnNest& n : nests) {
    S* at = base + n.offset;
    switch (n.element) {
      case 1: dense = move_nest<Pack, std::uint8_t>(n, form, at, dense); break;
      case 2: dense = move_nest<Pack, std::uint16_t>(n, form, at, dense); break;
      case 3: dense = move_nest<Pack, Block<3>>(n, form, at, dense); break;
      case 4: dense = move_nest<Pack, std::uint32_t>(n, form, at, dense); break;
      case 6: dense = move_nest<Pack, Block<6>>(n, form, at, dense); break;
      case 8: dense = move_nest<Pack, std::uint64_t>(n, form, at, dense); break;
      case 12: dense = move_nest<Pack, Block<12>>(n, form, at, dense); break;
      case 16: dense = move_nest<Pack, Block<16>>(n, form, at, dense); break;
      case 24: dense = move_nest<Pack, Block<24>>(n, form, at, dense); break;
      case 32: dense = move_nest<Pack, Block<32>>(n, form, at, dense); break;
      default: throw std::invalid_argument("no loop by hand for elements of " + std::to_string(n.element) + " bytes");
    }
  }
}

}  // namespace

void hand_pack(const std::vector<DrawnNest>& nests, Form form, const std::byte* base, std::byte* out) {
  move_nests<true>(nests, form, base, out);
}
void hand_unpack(const std::vector<DrawnNest>& nests, Form form, std::byte* base, const std::byte* in) {
  move_nests<false>(nests, form, base, in);
}

}  // namespace lacuna::bench
