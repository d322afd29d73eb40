#include "tools/corpus/ddtbench.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

namespace lacuna::corpus {
namespace {

using base::Result;
using layout::Order;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kDouble = 8;
constexpr std::int64_t kComplex = 16;

// --- the sizes -------------------------------------------------------------------------------------------------------

struct WrfSize {  // arrays of d1 x d2 x d3, boxes of n1 x n2 x n3 at (s1, 0, s3)
  std::int64_t d1, d2, d3, n1, n2, n3, s1, s3;
};
constexpr std::array kWrfY = {WrfSize{32, 65, 52, 23, 65, 3, 5, 7}, WrfSize{27, 65, 41, 19, 65, 3, 4, 7},
                              WrfSize{24, 65, 34, 16, 65, 3, 4, 7}, WrfSize{22, 65, 30, 14, 65, 3, 4, 7},
                              WrfSize{19, 65, 24, 11, 65, 3, 4, 7}};
constexpr std::array kWrfX = {WrfSize{32, 65, 52, 3, 65, 44, 22, 4}, WrfSize{24, 65, 34, 3, 65, 26, 14, 4},
                              WrfSize{19, 65, 24, 3, 65, 16, 9, 4}};

using Extents = std::array<std::int64_t, 4>;
constexpr std::array kMilc = {Extents{16, 16, 16, 16}, Extents{8, 16, 16, 16}, Extents{8, 8, 8, 16}, Extents{8, 8, 8, 8}};
constexpr std::array<std::int64_t, 7> kLu = {12, 33, 64, 102, 162, 408, 1020};  // square: D2 = D3
constexpr std::array kMg = {Extents{34, 18, 18}, Extents{130, 66, 66}, Extents{258, 130, 130}, Extents{514, 258, 258}};

struct ListSize {  // count of the n indices
  std::int64_t count, n;
};
constexpr std::array kLammpsFull = {ListSize{3062, 3534}, ListSize{2243, 2597}, ListSize{1662, 1907}};
constexpr std::array kLammpsAtomic = {ListSize{243, 4084}, ListSize{145, 2157}, ListSize{114, 1217}};
constexpr std::array kSpecfemOc = {ListSize{3225, 88881}, ListSize{1897, 38585}, ListSize{877, 12857}, ListSize{493, 3697}};
constexpr std::array kSpecfemCm = {
    std::array{ListSize{11797, 834917}, ListSize{3009, 51153}}, std::array{ListSize{7125, 396849}, ListSize{1729, 22477}},
    std::array{ListSize{3801, 152001}, ListSize{801, 7209}}, std::array{ListSize{1957, 39929}, ListSize{245, 1225}}};
constexpr std::array<std::int64_t, 4> kSpecfemMt = {7600, 6400, 5600, 6200};
constexpr std::array<std::int64_t, 5> kFft2 = {256, 512, 768, 1024, 1536};
constexpr std::int64_t kFft2Processes = 2;

constexpr std::uint64_t kSeed = 2012;  // of every first list; a second list of one case takes the next

// --- what the families share -----------------------------------------------------------------------------------------

struct Types {
  std::string dims;
  Datatype send;
  Datatype receive;
  std::int64_t send_span;
  std::int64_t receive_span;
};

// The arrays of one side, and the parts of them that move, as one struct.
class Arrays {
 public:
  /// Places an array of `bytes`; the part is relative to its start.
  void add(std::int64_t bytes, Datatype part) {
    end_ = (end_ + 63) / 64 * 64;
    offsets_.push_back(end_);
    parts_.push_back(std::move(part));
    end_ += bytes;
  }
  [[nodiscard]] Datatype structure() const { return Datatype::structure(List(parts_.size(), 1), offsets_, parts_); }
  [[nodiscard]] std::int64_t span() const { return end_; }

 private:
  List offsets_;
  std::vector<Datatype> parts_;
  std::int64_t end_ = 0;
};

Types same_on_both_sides(std::string dims, const Datatype& layout, std::int64_t span) {
  return {std::move(dims), layout, layout, span, span};
}

// Elements of `width` values of `value_bytes`, chosen by a list.
Datatype chosen(const List& list, std::int64_t width, std::int64_t value_bytes) {
  List displacements;
  displacements.reserve(list.size());
  for (const std::int64_t index : list) displacements.push_back(width * index);
  return Datatype::indexed_block(width, displacements, Datatype::basic(value_bytes));
}

// --- WRF: halos of a weather model; nine arrays of two, three and four dimensions ------------------------------------

enum class Form { vectors, subarrays };

// A box of the first `dims` dimensions, and in the fourth index 1 of 2. In the fastest first: i, k, j.
Datatype wrf_box(const WrfSize& w, int dims, Form form) {
  const Datatype value = Datatype::basic(kFloat);
  if (form == Form::subarrays) {
    if (dims == 2) return Datatype::subarray({w.d1, w.d3}, {w.n1, w.n3}, {w.s1, w.s3}, Order::fortran, value);
    if (dims == 3) return Datatype::subarray({w.d1, w.d2, w.d3}, {w.n1, w.n2, w.n3}, {w.s1, 0, w.s3}, Order::fortran, value);
    return Datatype::subarray({w.d1, w.d2, w.d3, 2}, {w.n1, w.n2, w.n3, 1}, {w.s1, 0, w.s3, 1}, Order::fortran, value);
  }
  if (dims == 2) return Datatype::at(kFloat * (w.s3 * w.d1 + w.s1), Datatype::vector(w.n3, w.n1, w.d1, value));
  const std::int64_t plane = w.d1 * w.d2;
  const std::int64_t start = w.s3 * plane + w.s1 + (dims == 4 ? plane * w.d3 : 0);
  const Datatype rows = Datatype::vector(w.n2, w.n1, w.d1, value);
  return Datatype::at(kFloat * start, Datatype::hvector(w.n3, 1, kFloat * plane, rows));
}

Types wrf(const WrfSize& w, Form form) {
  Arrays arrays;
  for (const int dims : {2, 2, 2, 2, 3, 3, 3, 4, 4}) {
    const std::int64_t values = w.d1 * w.d3 * (dims == 2 ? 1 : w.d2) * (dims == 4 ? 2 : 1);
    arrays.add(kFloat * values, wrf_box(w, dims, form));
  }
  std::string dims = fmt::format("{}x{}x{} sub {}x{}x{} start({},0,{})", w.d1, w.d2, w.d3, w.n1, w.n2, w.n3, w.s1, w.s3);
  return same_on_both_sides(std::move(dims), arrays.structure(), arrays.span());
}

// --- MILC: lattice QCD; su3 vectors of 6 floats, two half planes of z for each t -------------------------------------

Types milc(const Extents& d) {
  const auto [d2, d3, d4, d5] = d;
  const Datatype su3 = Datatype::contiguous(6, Datatype::basic(kFloat));
  const Datatype planes = Datatype::vector(d5, d2 * d3 / 2, d2 * d3 * d4 / 2, su3);
  const Datatype both = Datatype::hvector(2, 1, 6 * kFloat * d2 * d3 * d4 * d5 / 2, planes);
  return same_on_both_sides(fmt::format("{}x{}x{}x{}", d2, d3, d4, d5), both, 6 * kFloat * d2 * d3 * d4 * d5);
}

// --- NAS LU and MG: faces of three-dimensional grids -----------------------------------------------------------------

// double A[5, n + 2, n + 2]: the last row or column goes to the peer's ghost cells at index 0.
Types nas_lu(std::int64_t n, bool column) {
  const std::int64_t row = 5 * kDouble * (n + 2);
  const Datatype cell = Datatype::contiguous(5, Datatype::basic(kDouble));
  const Datatype line = column ? Datatype::vector(n, 1, n + 2, cell) : Datatype::contiguous(n, cell);
  const std::int64_t send = column ? row + n * 5 * kDouble : n * row + 5 * kDouble;
  const std::int64_t receive = column ? row : 5 * kDouble;
  const std::int64_t span = row * (n + 2);
  return {fmt::format("{}x{}", n, n), Datatype::at(send, line), Datatype::at(receive, line), span, span};
}

// double A[D1, D2, D3]: the last inner plane across dimension `across` goes to the ghost plane behind it.
Types nas_mg(const Extents& d, int across) {
  const std::array step = {kDouble, kDouble * d[0], kDouble * d[0] * d[1]};
  const Datatype value = Datatype::basic(kDouble);
  Datatype face;
  if (across == 0) {
    const Datatype column = Datatype::vector(d[1] - 2, 1, d[0], value);
    face = Datatype::hvector(d[2] - 2, 1, step[2], column);
  } else if (across == 1) {
    face = Datatype::vector(d[2] - 2, d[0] - 2, d[0] * d[1], value);
  } else {
    face = Datatype::vector(d[1] - 2, d[0] - 2, d[0], value);
  }
  const auto dim = static_cast<std::size_t>(across);
  const std::int64_t corner = step[0] + step[1] + step[2] - step[dim];  // index 1 in the two other dimensions
  const std::int64_t span = step[2] * d[2];
  return {fmt::format("{}x{}x{}", d[0], d[1], d[2]), Datatype::at(corner + (d[dim] - 2) * step[dim], face),
          Datatype::at(corner + (d[dim] - 1) * step[dim], face), span, span};
}

// --- LAMMPS: chosen atoms, one struct of arrays; they arrive behind the receiver's own -------------------------------

Types lammps(const ListSize& size, int scalars) {
  const List list = ddtbench_list(size.n, size.count, kSeed);
  const std::int64_t atoms = size.n + size.count;
  Arrays send;
  Arrays receive;
  for (int array = 0; array <= scalars; ++array) {
    const std::int64_t width = array == 0 ? 3 : 1;  // x, then tag, type, mask and, in full, q and molecule
    const Datatype tail = Datatype::contiguous(width * size.count, Datatype::basic(kDouble));
    send.add(kDouble * width * atoms, chosen(list, width, kDouble));
    receive.add(kDouble * width * atoms, Datatype::at(kDouble * width * size.n, tail));
  }
  return {fmt::format("icount {} DIM1 {}", size.count, size.n), send.structure(), receive.structure(), send.span(), receive.span()};
}

// --- SPECFEM3D: assembly of seismic waves at shared mesh points ------------------------------------------------------

Types specfem_oc(const ListSize& size) {
  const List list = ddtbench_list(size.n, size.count, kSeed);
  return same_on_both_sides(fmt::format("icount {} DIM1 {}", size.count, size.n), chosen(list, 1, kFloat), kFloat * size.n);
}

// Crust and mantle, then the inner core: vectors of three floats.
Types specfem_cm(const std::array<ListSize, 2>& sizes) {
  Arrays arrays;
  std::uint64_t seed = kSeed;
  for (const ListSize& size : sizes) arrays.add(3 * kFloat * size.n, chosen(ddtbench_list(size.n, size.count, seed++), 3, kFloat));
  std::string dims = fmt::format("icount {}+{} DIM2 {},{}", sizes[0].count, sizes[1].count, sizes[0].n, sizes[1].n);
  return same_on_both_sides(std::move(dims), arrays.structure(), arrays.span());
}

// The first of two vectors at each of n points, received densely.
Types specfem_mt(std::int64_t n) {
  const Datatype point = Datatype::contiguous(3, Datatype::basic(kFloat));
  return {fmt::format("3x2x{}", n), Datatype::vector(n, 1, 2, point), Datatype::contiguous(n, point), 6 * kFloat * n, 3 * kFloat * n};
}

// --- FFT2: the transpose of a two-dimensional FFT, the blocks for all peers in rank order ----------------------------

Types fft2(std::int64_t n) {
  const std::int64_t p = kFft2Processes;
  const std::int64_t part = n / p;
  const Datatype value = Datatype::basic(kComplex);
  const Datatype rows = Datatype::vector(part, part, n, value);
  const Datatype gather = Datatype::resized(rows, 0, part * kComplex);
  const Datatype column = Datatype::vector(part, 1, n, value);
  const Datatype element = Datatype::resized(column, 0, kComplex);
  const Datatype scatter = Datatype::contiguous(part, element);
  const std::int64_t span = kComplex * n * part;
  return {fmt::format("N={} P={}", n, p), Datatype::contiguous(p, gather), Datatype::contiguous(p, scatter), span, span};
}

// --- the table of families -------------------------------------------------------------------------------------------

struct Family {
  std::string_view name;
  std::size_t sizes;
  Types (*make)(std::size_t size);
};

constexpr Family kFamilies[] = {
    {"WRF_y_vec", kWrfY.size(), [](std::size_t i) { return wrf(kWrfY[i], Form::vectors); }},
    {"WRF_y_sa", kWrfY.size(), [](std::size_t i) { return wrf(kWrfY[i], Form::subarrays); }},
    {"WRF_x_vec", kWrfX.size(), [](std::size_t i) { return wrf(kWrfX[i], Form::vectors); }},
    {"WRF_x_sa", kWrfX.size(), [](std::size_t i) { return wrf(kWrfX[i], Form::subarrays); }},
    {"MILC_su3_zd", kMilc.size(), [](std::size_t i) { return milc(kMilc[i]); }},
    {"NAS_LU_x", kLu.size(), [](std::size_t i) { return nas_lu(kLu[i], false); }},
    {"NAS_LU_y", kLu.size(), [](std::size_t i) { return nas_lu(kLu[i], true); }},
    {"NAS_MG_x", kMg.size(), [](std::size_t i) { return nas_mg(kMg[i], 0); }},
    {"NAS_MG_y", kMg.size(), [](std::size_t i) { return nas_mg(kMg[i], 1); }},
    {"NAS_MG_z", kMg.size(), [](std::size_t i) { return nas_mg(kMg[i], 2); }},
    {"LAMMPS_full", kLammpsFull.size(), [](std::size_t i) { return lammps(kLammpsFull[i], 5); }},
    {"LAMMPS_atomic", kLammpsAtomic.size(), [](std::size_t i) { return lammps(kLammpsAtomic[i], 3); }},
    {"SPECFEM3D_oc", kSpecfemOc.size(), [](std::size_t i) { return specfem_oc(kSpecfemOc[i]); }},
    {"SPECFEM3D_cm", kSpecfemCm.size(), [](std::size_t i) { return specfem_cm(kSpecfemCm[i]); }},
    {"SPECFEM3D_mt", kSpecfemMt.size(), [](std::size_t i) { return specfem_mt(kSpecfemMt[i]); }},
    {"FFT2", kFft2.size(), [](std::size_t i) { return fft2(kFft2[i]); }},
};

const Family* find(std::string_view name) {
  for (const Family& family : kFamilies) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

// splitmix64 (Steele, Lea and Flood 2014): the standard library's distributions differ from one implementation to the
// next.
std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<std::string> ddtbench_families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

int ddtbench_sizes(std::string_view family) {
  const Family* found = find(family);
  return found == nullptr ? 0 : static_cast<int>(found->sizes);
}

Result<DdtCase> ddtbench(std::string_view family, int size_index) {
  const Family* found = find(family);
  if (found == nullptr) return base::fail(base::Code::invalid_argument, fmt::format("DDTBench has no family \"{}\"", family));
  if (size_index < 0 || std::cmp_greater_equal(size_index, found->sizes)) {
    return base::fail(base::Code::invalid_argument, fmt::format("{} has {} sizes, none of index {}", family, found->sizes, size_index));
  }
  Types types = found->make(static_cast<std::size_t>(size_index));
  layout::Layout send = LACUNA_TRY(types.send.layout());
  layout::Layout receive = LACUNA_TRY(types.receive.layout());
  return DdtCase{.name = std::string(found->name),
                 .dims = std::move(types.dims),
                 .send_type = std::move(types.send),
                 .receive_type = std::move(types.receive),
                 .send = std::move(send),
                 .receive = std::move(receive),
                 .send_span = types.send_span,
                 .receive_span = types.receive_span};
}

std::vector<std::int64_t> ddtbench_list(std::int64_t n, std::int64_t count, std::uint64_t seed) {
  List list(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<std::int64_t>(i);
  // Fisher and Yates, as far as it is needed.
  for (std::int64_t i = 0; i < count; ++i) {
    const auto other = i + static_cast<std::int64_t>(splitmix64(seed) % static_cast<std::uint64_t>(n - i));
    std::swap(list[static_cast<std::size_t>(i)], list[static_cast<std::size_t>(other)]);
  }
  list.resize(static_cast<std::size_t>(count));
  return list;
}

}  // namespace lacuna::corpus
