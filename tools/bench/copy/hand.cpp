#include "tools/bench/copy/hand.hpp"

#include <complex>
#include <cstring>

#define RESTRICT __restrict

namespace lacuna::bench {
namespace {

using Index = std::int64_t;

// --- the loops: `c` counts elements of the packed buffer, as the published codes do ----------------------------------

template <class T>
Index pack_elements(const HandNest& n, const T* RESTRICT a, T* RESTRICT out) {
  Index c = 0;
  if (!n.list.empty()) {
    const std::int32_t* RESTRICT list = n.list.data();
    const auto count = static_cast<Index>(n.list.size());
    if (!n.lengths.empty()) {
      const std::int32_t* RESTRICT lengths = n.lengths.data();
      for (Index i = 0; i < count; ++i)
        for (Index k = 0; k < lengths[i]; ++k) out[c++] = a[list[i] + k];
    } else if (n.loops.empty()) {
      for (Index i = 0; i < count; ++i) out[c++] = a[list[i]];
    } else {
      const Index length = n.loops[0].count;
      for (Index i = 0; i < count; ++i)
        for (Index k = 0; k < length; ++k) out[c++] = a[list[i] + k];
    }
    return c;
  }
  const auto& l = n.loops;  // padded to four
  const Index n0 = l[3].count, n1 = l[2].count, n2 = l[1].count, n3 = l[0].count;
  const Index s0 = l[3].stride, s1 = l[2].stride, s2 = l[1].stride, s3 = l[0].stride;
  for (Index i3 = 0; i3 < n3; ++i3)
    for (Index i2 = 0; i2 < n2; ++i2)
      if (s0 == 1) {
        for (Index i1 = 0; i1 < n1; ++i1)
          for (Index i0 = 0; i0 < n0; ++i0) out[c++] = a[i3 * s3 + i2 * s2 + i1 * s1 + i0];
      } else {
        for (Index i1 = 0; i1 < n1; ++i1)
          for (Index i0 = 0; i0 < n0; ++i0) out[c++] = a[i3 * s3 + i2 * s2 + i1 * s1 + i0 * s0];
      }
  return c;
}

template <class T>
Index unpack_elements(const HandNest& n, T* RESTRICT a, const T* RESTRICT in) {
  Index c = 0;
  if (!n.list.empty()) {
    const std::int32_t* RESTRICT list = n.list.data();
    const auto count = static_cast<Index>(n.list.size());
    if (!n.lengths.empty()) {
      const std::int32_t* RESTRICT lengths = n.lengths.data();
      for (Index i = 0; i < count; ++i)
        for (Index k = 0; k < lengths[i]; ++k) a[list[i] + k] = in[c++];
    } else if (n.loops.empty()) {
      for (Index i = 0; i < count; ++i) a[list[i]] = in[c++];
    } else {
      const Index length = n.loops[0].count;
      for (Index i = 0; i < count; ++i)
        for (Index k = 0; k < length; ++k) a[list[i] + k] = in[c++];
    }
    return c;
  }
  const auto& l = n.loops;
  const Index n0 = l[3].count, n1 = l[2].count, n2 = l[1].count, n3 = l[0].count;
  const Index s0 = l[3].stride, s1 = l[2].stride, s2 = l[1].stride, s3 = l[0].stride;
  for (Index i3 = 0; i3 < n3; ++i3)
    for (Index i2 = 0; i2 < n2; ++i2)
      if (s0 == 1) {
        for (Index i1 = 0; i1 < n1; ++i1)
          for (Index i0 = 0; i0 < n0; ++i0) a[i3 * s3 + i2 * s2 + i1 * s1 + i0] = in[c++];
      } else {
        for (Index i1 = 0; i1 < n1; ++i1)
          for (Index i0 = 0; i0 < n0; ++i0) a[i3 * s3 + i2 * s2 + i1 * s1 + i0 * s0] = in[c++];
      }
  return c;
}

// One memcpy for each block; `Pack` says which way.
template <bool Pack, class Scattered, class Dense>
Index move_blocks(const HandNest& n, Index size, Scattered* RESTRICT a, Dense* RESTRICT dense) {
  Index c = 0;
  const auto block = [&](Index at, Index bytes) {
    if constexpr (Pack) {
      std::memcpy(dense + c, a + at, static_cast<std::size_t>(bytes));
    } else {
      std::memcpy(a + at, dense + c, static_cast<std::size_t>(bytes));
    }
    c += bytes;
  };
  if (!n.list.empty()) {
    const auto count = static_cast<Index>(n.list.size());
    const Index same = n.loops.empty() ? size : n.loops[0].count * size;
    for (Index i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      block(n.list[at] * size, n.lengths.empty() ? same : n.lengths[at] * size);
    }
    return c;
  }
  const auto& l = n.loops;
  const bool unit = l[3].stride == 1;
  const Index bytes = unit ? l[3].count * size : size;
  const Index n0 = unit ? 1 : l[3].count;
  for (Index i3 = 0; i3 < l[0].count; ++i3)
    for (Index i2 = 0; i2 < l[1].count; ++i2)
      for (Index i1 = 0; i1 < l[2].count; ++i1)
        for (Index i0 = 0; i0 < n0; ++i0) block((i3 * l[0].stride + i2 * l[1].stride + i1 * l[2].stride + i0 * l[3].stride) * size, bytes);
  return c;
}

template <class T>
std::byte* pack_nest(const HandNest& n, Form form, const std::byte* base, std::byte* out) {
  if (form == Form::memcpy) return out + move_blocks<true>(n, sizeof(T), base, out);
  return out + pack_elements(n, reinterpret_cast<const T*>(base), reinterpret_cast<T*>(out)) * static_cast<Index>(sizeof(T));
}
template <class T>
const std::byte* unpack_nest(const HandNest& n, Form form, std::byte* base, const std::byte* in) {
  if (form == Form::memcpy) return in + move_blocks<false>(n, sizeof(T), base, in);
  return in + unpack_elements(n, reinterpret_cast<T*>(base), reinterpret_cast<const T*>(in)) * static_cast<Index>(sizeof(T));
}

// --- from a datatype -------------------------------------------------------------------------------------------------

using Op = corpus::Datatype::Op;
using Nests = std::vector<HandNest>;

std::int64_t extent_of(const corpus::Datatype& type) { return type.layout().value().extent(); }

// The loop around a single nest; several nests inside one loop are an array of structs.
bool around(Nests& nests, std::int64_t count, std::int64_t stride_bytes) {
  if (count == 1) return true;
  if (nests.size() != 1 || !nests[0].list.empty() || stride_bytes % nests[0].element != 0) return false;
  nests[0].loops.insert(nests[0].loops.begin(), {count, stride_bytes / nests[0].element});
  return true;
}

bool listed(Nests& nests, const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& bytes, std::int64_t extent) {
  if (bytes.size() == 1) {
    if (!lengths.empty() && !around(nests, lengths[0], extent)) return false;
    for (HandNest& nest : nests) nest.offset += bytes[0];
    return true;
  }
  if (nests.size() != 1 || !nests[0].list.empty() || nests[0].loops.size() > 1) return false;
  HandNest& nest = nests[0];
  if (!nest.loops.empty() && nest.loops[0].stride != 1) return false;
  for (const std::int64_t at : bytes) {
    if (at % nest.element != 0) return false;
    nest.list.push_back(static_cast<std::int32_t>(at / nest.element));
  }
  const std::int64_t width = nest.loops.empty() ? 1 : nest.loops[0].count;
  if (width * nest.element != extent) return lengths.empty();
  for (const std::int64_t length : lengths) nest.lengths.push_back(static_cast<std::int32_t>(length * width));
  if (!lengths.empty()) nest.loops.clear();
  return true;
}

std::optional<Nests> build(const corpus::Datatype& type) {
  if (type.op == Op::basic) return Nests{HandNest{.element = type.numbers[0], .loops = {}, .list = {}, .lengths = {}}};
  if (type.op == Op::structure) {
    Nests all;
    for (std::size_t i = 0; i < type.members.size(); ++i) {
      std::optional<Nests> nests = build(type.members[i]);
      if (!nests || !around(*nests, type.lists[0][i], extent_of(type.members[i]))) return std::nullopt;
      for (HandNest& nest : *nests) {
        nest.offset += type.lists[1][i];
        all.push_back(std::move(nest));
      }
    }
    return all;
  }
  std::optional<Nests> nests = build(type.members[0]);
  if (!nests) return nests;
  const std::int64_t extent = extent_of(type.members[0]);
  bool fits = true;
  const auto scaled = [&](std::vector<std::int64_t> list) {
    for (std::int64_t& at : list) at *= extent;
    return list;
  };
  switch (type.op) {
    case Op::contiguous: fits = around(*nests, type.numbers[0], extent); break;
    case Op::vector: fits = around(*nests, type.numbers[1], extent) && around(*nests, type.numbers[0], type.numbers[2] * extent); break;
    case Op::hvector: fits = around(*nests, type.numbers[1], extent) && around(*nests, type.numbers[0], type.numbers[2]); break;
    case Op::indexed: fits = listed(*nests, type.lists[0], scaled(type.lists[1]), extent); break;
    case Op::hindexed: fits = listed(*nests, type.lists[0], type.lists[1], extent); break;
    case Op::indexed_block: fits = around(*nests, type.numbers[0], extent) && listed(*nests, {}, scaled(type.lists[0]), extent); break;
    case Op::hindexed_block: fits = around(*nests, type.numbers[0], extent) && listed(*nests, {}, type.lists[0], extent); break;
    case Op::subarray: {
      std::int64_t step = extent;
      const std::size_t dims = type.lists[0].size();
      for (std::size_t d = 0; d < dims; ++d) {
        const std::size_t i = type.numbers[0] != 0 ? d : dims - 1 - d;
        fits = fits && around(*nests, type.lists[1][i], step);
        for (HandNest& nest : *nests) nest.offset += type.lists[2][i] * step;
        step *= type.lists[0][i];
      }
      break;
    }
    case Op::resized:
    case Op::basic:
    case Op::structure: break;
  }
  return fits ? nests : std::nullopt;
}

}  // namespace

std::optional<std::vector<HandNest>> nests_of(const corpus::Datatype& type) {
  std::optional<Nests> nests = build(type);
  if (!nests) return nests;
  for (HandNest& nest : *nests) {
    // Loops over elements that follow one another are one loop: a programmer sees that.
    for (std::size_t i = nest.loops.size(); i-- > 1;) {
      if (nest.loops[i - 1].stride == nest.loops[i].count * nest.loops[i].stride && nest.loops[i].stride == 1) {
        nest.loops[i - 1] = {nest.loops[i - 1].count * nest.loops[i].count, 1};
        nest.loops.erase(nest.loops.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (nest.loops.size() > 4) return std::nullopt;
    if (nest.list.empty()) nest.loops.insert(nest.loops.begin(), 4 - nest.loops.size(), {1, 1});
  }
  return nests;
}

bool has_blocks(const std::vector<HandNest>& nests) {
  for (const HandNest& n : nests) {
    if (!n.list.empty() ? !n.loops.empty() || !n.lengths.empty() : n.loops[3].stride == 1) return true;
  }
  return false;
}

void hand_pack(const std::vector<HandNest>& nests, Form form, const std::byte* base, std::byte* out) {
  for (const HandNest& n : nests) {
    const std::byte* at = base + n.offset;
    switch (n.element) {
      case 1: out = pack_nest<std::uint8_t>(n, form, at, out); break;
      case 2: out = pack_nest<std::int16_t>(n, form, at, out); break;
      case 4: out = pack_nest<float>(n, form, at, out); break;
      case 8: out = pack_nest<double>(n, form, at, out); break;
      default: out = pack_nest<std::complex<double>>(n, form, at, out);
    }
  }
}

void hand_unpack(const std::vector<HandNest>& nests, Form form, std::byte* base, const std::byte* in) {
  for (const HandNest& n : nests) {
    std::byte* at = base + n.offset;
    switch (n.element) {
      case 1: in = unpack_nest<std::uint8_t>(n, form, at, in); break;
      case 2: in = unpack_nest<std::int16_t>(n, form, at, in); break;
      case 4: in = unpack_nest<float>(n, form, at, in); break;
      case 8: in = unpack_nest<double>(n, form, at, in); break;
      default: in = unpack_nest<std::complex<double>>(n, form, at, in);
    }
  }
}

// --- arrays of structs -----------------------------------------------------------------------------------------------

namespace {

struct Vec {
  double x, y, z;
};
struct Atom {  // all but the padding: 29 of 40 bytes
  std::int32_t id;
  Vec at;
  std::uint8_t flag;
};
struct Couple {  // 12 of 16 bytes
  float weight;
  double value;
};
struct Particle {  // what a neighbour needs of it: 28 of 56 bytes, in a nested struct
  Vec position;
  std::int32_t type;
  Vec velocity;
};

// The members one by one; each knows its size when it is compiled, as a struct's do.
template <bool Pack, Form form, class T, class P>
void member(T& value, P*& packed) {
  if constexpr (form == Form::memcpy || std::is_class_v<std::remove_const_t<T>>) {
    if constexpr (Pack) {
      std::memcpy(packed, &value, sizeof value);
    } else {
      std::memcpy(&value, packed, sizeof value);
    }
  } else {
    using Value = std::remove_const_t<T>;
    if constexpr (Pack) {
      *reinterpret_cast<Value __attribute__((aligned(1), may_alias))*>(packed) = value;
    } else {
      value = *reinterpret_cast<const Value __attribute__((aligned(1), may_alias))*>(packed);
    }
  }
  packed += sizeof value;
}
template <bool Pack, Form form, class V, class P>
void vec(V& v, P*& packed) {
  if constexpr (form == Form::memcpy) {
    member<Pack, form>(v, packed);
  } else {
    member<Pack, form>(v.x, packed);
    member<Pack, form>(v.y, packed);
    member<Pack, form>(v.z, packed);
  }
}
template <bool Pack, Form form, class P>
void record(std::conditional_t<Pack, const Atom, Atom>& a, P*& packed) {
  member<Pack, form>(a.id, packed);
  vec<Pack, form>(a.at, packed);
  member<Pack, form>(a.flag, packed);
}
template <bool Pack, Form form, class P>
void record(std::conditional_t<Pack, const Couple, Couple>& a, P*& packed) {
  member<Pack, form>(a.weight, packed);
  member<Pack, form>(a.value, packed);
}
template <bool Pack, Form form, class P>
void record(std::conditional_t<Pack, const Particle, Particle>& a, P*& packed) {
  member<Pack, form>(a.type, packed);
  vec<Pack, form>(a.velocity, packed);
}

template <bool Pack, Form form, class R, class S, class P>
void records(S* base, std::int64_t count, const std::int32_t* RESTRICT list, P* packed) {
  using T = std::conditional_t<Pack, const R, R>;
  T* RESTRICT a = reinterpret_cast<T*>(base);
  if (list != nullptr) {
    for (Index i = 0; i < count; ++i) record<Pack, form>(a[list[i]], packed);
  } else {
    for (Index i = 0; i < count; ++i) record<Pack, form>(a[i], packed);
  }
}

template <bool Pack, Form form, class S, class P>
void any_records(Record kind, S* base, std::int64_t count, const std::int32_t* list, P* packed) {
  switch (kind) {
    case Record::atom: return records<Pack, form, Atom>(base, count, list, packed);
    case Record::pair: return records<Pack, form, Couple>(base, count, list, packed);
    case Record::particle: return records<Pack, form, Particle>(base, count, list, packed);
  }
}

}  // namespace

std::int64_t record_extent(Record record) {
  switch (record) {
    case Record::atom: return sizeof(Atom);
    case Record::pair: return sizeof(Couple);
    case Record::particle: return sizeof(Particle);
  }
  return 0;
}

corpus::Datatype record_type(Record record) {
  using corpus::Datatype;
  const Datatype number = Datatype::basic(8);
  const Datatype triple = Datatype::contiguous(3, number);
  switch (record) {
    case Record::atom:
      return Datatype::resized(Datatype::structure({1, 1, 1}, {offsetof(Atom, id), offsetof(Atom, at), offsetof(Atom, flag)},
                                                   {Datatype::basic(4), triple, Datatype::basic(1)}),
                               0, sizeof(Atom));
    case Record::pair:
      return Datatype::resized(
          Datatype::structure({1, 1}, {offsetof(Couple, weight), offsetof(Couple, value)}, {Datatype::basic(4), number}), 0,
          sizeof(Couple));
    case Record::particle: break;
  }
  return Datatype::resized(
      Datatype::structure({1, 1}, {offsetof(Particle, type), offsetof(Particle, velocity)}, {Datatype::basic(4), triple}), 0,
      sizeof(Particle));
}

void hand_pack_records(Record record, Form form, const std::byte* base, std::int64_t count, const std::int32_t* list, std::byte* out) {
  form == Form::elements ? any_records<true, Form::elements>(record, base, count, list, out)
                         : any_records<true, Form::memcpy>(record, base, count, list, out);
}
void hand_unpack_records(Record record, Form form, std::byte* base, std::int64_t count, const std::int32_t* list, const std::byte* in) {
  form == Form::elements ? any_records<false, Form::elements>(record, base, count, list, in)
                         : any_records<false, Form::memcpy>(record, base, count, list, in);
}

}  // namespace lacuna::bench
