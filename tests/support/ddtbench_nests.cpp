#include "tests/support/ddtbench_nests.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace lacuna::support {

using corpus::DdtCase;
using layout::Run;
using Runs = std::vector<Run>;

constexpr std::uint64_t kSeed = 2012;

// The dims of a case hold all its numbers.
std::vector<DdtList> ddtbench_lists(const DdtCase& c) {
  long count[2] = {0, 0};
  long n[2] = {0, 0};
  if (std::sscanf(c.dims.c_str(), "icount %ld+%ld DIM2 %ld,%ld", &count[0], &count[1], &n[0], &n[1]) == 4) {
    return {{corpus::ddtbench_list(n[0], count[0], kSeed), 1}, {corpus::ddtbench_list(n[1], count[1], kSeed + 1), 1}};
  }
  if (std::sscanf(c.dims.c_str(), "icount %ld DIM1 %ld", &count[0], &n[0]) == 2) {
    return {{corpus::ddtbench_list(n[0], count[0], kSeed), c.name == "LAMMPS_full" ? 6 : c.name == "LAMMPS_atomic" ? 4 : 1}};
  }
  return {};
}

namespace {

class Elements {
 public:
  void add(std::int64_t offset, std::int64_t length) { map_.runs.push_back({offset, length}); }
  [[nodiscard]] Runs merged() const { return map_.merged(); }

 private:
  naive::Typemap map_;
};

std::int64_t aligned(std::int64_t offset) { return (offset + 63) / 64 * 64; }

Runs wrf_nest(const DdtCase& c) {
  long d1, d2, d3, n1, n2, n3, s1, s3;
  EXPECT_EQ(std::sscanf(c.dims.c_str(), "%ldx%ldx%ld sub %ldx%ldx%ld start(%ld,0,%ld)", &d1, &d2, &d3, &n1, &n2, &n3, &s1, &s3), 8);
  Elements elements;
  std::int64_t base = 0;
  for (int array = 0; array < 9; ++array) {
    base = aligned(base);
    const bool flat = array < 4;
    const std::int64_t fourth = array >= 7 ? 1 : 0;
    for (long j = s3; j < s3 + n3; ++j) {
      for (long k = 0; k < (flat ? 1 : n2); ++k) {
        for (long i = s1; i < s1 + n1; ++i) elements.add(base + 4 * (flat ? i + d1 * j : i + d1 * (k + d2 * (j + d3 * fourth))), 4);
      }
    }
    base += 4 * d1 * d3 * (flat ? 1 : d2) * (fourth + 1);
  }
  return elements.merged();
}

Runs milc_nest(const DdtCase& c) {
  long d2, d3, d4, d5;
  EXPECT_EQ(std::sscanf(c.dims.c_str(), "%ldx%ldx%ldx%ld", &d2, &d3, &d4, &d5), 4);
  Elements elements;
  for (long t = 0; t < d5; ++t) {
    for (long z = 0; z < d4; z += d4 / 2) {
      for (long y = 0; y < d3 / 2; ++y) {
        for (long x = 0; x < d2; ++x) elements.add(24 * (x + d2 * (y + d3 * (z + d4 * t))), 24);
      }
    }
  }
  return elements.merged();
}

Runs lu_nest(const DdtCase& c, bool receive) {
  const std::int64_t n = std::stol(c.dims);
  Elements elements;
  for (std::int64_t i = 1; i <= n; ++i) {
    const std::int64_t across = receive ? 0 : n;
    const std::int64_t y = c.name == "NAS_LU_y" ? across : i;
    const std::int64_t z = c.name == "NAS_LU_y" ? i : across;
    for (std::int64_t m = 0; m < 5; ++m) elements.add(8 * (m + 5 * (y + (n + 2) * z)), 8);
  }
  return elements.merged();
}

Runs mg_nest(const DdtCase& c, bool receive) {
  long d[3];
  EXPECT_EQ(std::sscanf(c.dims.c_str(), "%ldx%ldx%ld", &d[0], &d[1], &d[2]), 3);
  long from[3] = {1, 1, 1};
  long to[3] = {d[0] - 2, d[1] - 2, d[2] - 2};
  const int across = c.name.back() - 'x';
  from[across] = to[across] = receive ? d[across] - 1 : d[across] - 2;
  Elements elements;
  for (long z = from[2]; z <= to[2]; ++z) {
    for (long y = from[1]; y <= to[1]; ++y) {
      for (long x = from[0]; x <= to[0]; ++x) elements.add(8 * (x + d[0] * (y + d[1] * z)), 8);
    }
  }
  return elements.merged();
}

Runs lammps_nest(const DdtCase& c, bool receive) {
  long count;
  long n;
  EXPECT_EQ(std::sscanf(c.dims.c_str(), "icount %ld DIM1 %ld", &count, &n), 2);
  const DdtList chosen = ddtbench_lists(c).front();
  Elements elements;
  std::int64_t base = 0;
  for (std::int64_t array = 0; array < chosen.arrays; ++array) {
    base = aligned(base);
    const std::int64_t width = array == 0 ? 3 : 1;
    for (long i = 0; i < count; ++i) {
      const std::int64_t atom = receive ? n + i : chosen.list[static_cast<std::size_t>(i)];
      elements.add(base + 8 * width * atom, 8 * width);
    }
    base += 8 * width * (n + count);
  }
  return elements.merged();
}

Runs specfem_nest(const DdtCase& c, bool receive) {
  Elements elements;
  if (c.name == "SPECFEM3D_mt") {
    const std::int64_t n = std::stol(c.dims.substr(4));
    for (std::int64_t i = 0; i < n; ++i) elements.add(receive ? 12 * i : 24 * i, 12);
    return elements.merged();
  }
  const std::int64_t element = c.name == "SPECFEM3D_oc" ? 4 : 12;
  std::int64_t base = 0;
  long n = 0;
  EXPECT_EQ(std::sscanf(c.dims.c_str() + c.dims.find("DIM") + 4, "%ld", &n), 1);
  for (const DdtList& chosen : ddtbench_lists(c)) {
    for (const std::int64_t index : chosen.list) elements.add(base + element * index, element);
    base = aligned(base + element * n);  // of the second array
  }
  return elements.merged();
}

Runs fft2_nest(const DdtCase& c, bool receive) {
  const std::int64_t n = std::stol(c.dims.substr(2));
  const std::int64_t part = n / 2;
  Elements elements;
  for (std::int64_t peer = 0; peer < 2; ++peer) {
    for (std::int64_t outer = 0; outer < part; ++outer) {
      for (std::int64_t inner = 0; inner < part; ++inner) {
        const std::int64_t row = peer * part + (receive ? outer : inner);
        const std::int64_t column = receive ? inner : outer;
        elements.add(16 * (row + n * column), 16);
      }
    }
  }
  return elements.merged();
}

}  // namespace

Runs ddtbench_nest(const DdtCase& c, bool receive) {
  if (c.name.starts_with("WRF")) return wrf_nest(c);
  if (c.name.starts_with("MILC")) return milc_nest(c);
  if (c.name.starts_with("NAS_LU")) return lu_nest(c, receive);
  if (c.name.starts_with("NAS_MG")) return mg_nest(c, receive);
  if (c.name.starts_with("LAMMPS")) return lammps_nest(c, receive);
  if (c.name.starts_with("SPECFEM")) return specfem_nest(c, receive);
  return fft2_nest(c, receive);
}

}  // namespace lacuna::support
