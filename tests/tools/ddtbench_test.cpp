// The DDTBench corpus against the published figures, row by row, and against plain loop nests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/ddtbench_nests.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"
#include "tests/support/walk.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "DdtBench.*");

using corpus::DdtCase;
using layout::Layout;
using support::runs_of;
using support::value;
using List = std::vector<std::int64_t>;

// Payload, contiguous segments and span of the arrays, as published for each size. Copied, not computed.
constexpr const char* kFigures = R"(
WRF_y 32x65x52 sub 23x65x3 start(5,0,7)|90804|987|92|3055104
WRF_y 27x65x41 sub 19x65x3 start(4,0,7)|75012|987|76|2032452
WRF_y 24x65x34 sub 16x65x3 start(4,0,7)|63168|987|64|1498176
WRF_y 22x65x30 sub 14x65x3 start(4,0,7)|55272|987|56|1211760
WRF_y 19x65x24 sub 11x65x3 start(4,0,7)|43428|987|44|837216
WRF_x 32x65x52 sub 3x65x44 start(22,0,4)|173712|14476|12|3055104
WRF_x 24x65x34 sub 3x65x26 start(14,0,4)|102648|8554|12|1498176
WRF_x 19x65x24 sub 3x65x16 start(9,0,4)|63168|5264|12|837216
MILC_su3_zd 16x16x16x16|98304|32|3072|1572864
MILC_su3_zd 8x16x16x16|49152|32|1536|786432
MILC_su3_zd 8x8x8x16|24576|32|768|196608
MILC_su3_zd 8x8x8x8|12288|16|768|98304
NAS_LU_x 12x12|480|1|480|7840
NAS_LU_y 12x12|480|12|40|7840
NAS_LU_x 33x33|1320|1|1320|49000
NAS_LU_y 33x33|1320|33|40|49000
NAS_LU_x 64x64|2560|1|2560|174240
NAS_LU_y 64x64|2560|64|40|174240
NAS_LU_x 102x102|4080|1|4080|432640
NAS_LU_y 102x102|4080|102|40|432640
NAS_LU_x 162x162|6480|1|6480|1075840
NAS_LU_y 162x162|6480|162|40|1075840
NAS_LU_x 408x408|16320|1|16320|6724000
NAS_LU_y 408x408|16320|408|40|6724000
NAS_LU_x 1020x1020|40800|1|40800|41779360
NAS_LU_y 1020x1020|40800|1020|40|41779360
NAS_MG_x 34x18x18|2048|256|8|88128
NAS_MG_y 34x18x18|4096|16|256|88128
NAS_MG_z 34x18x18|4096|16|256|88128
NAS_MG_x 130x66x66|32768|4096|8|4530240
NAS_MG_y 130x66x66|65536|64|1024|4530240
NAS_MG_z 130x66x66|65536|64|1024|4530240
NAS_MG_x 258x130x130|131072|16384|8|34881600
NAS_MG_y 258x130x130|262144|128|2048|34881600
NAS_MG_z 258x130x130|262144|128|2048|34881600
NAS_MG_x 514x258x258|524288|65536|8|273711168
NAS_MG_y 514x258x258|1048576|256|4096|273711168
NAS_MG_z 514x258x258|1048576|256|4096|273711168
LAMMPS_full icount 3062 DIM1 3534|195968|18372|8|422144
LAMMPS_full icount 2243 DIM1 2597|143552|13458|8|309760
LAMMPS_full icount 1662 DIM1 1907|106368|9972|8|228416
LAMMPS_atomic icount 243 DIM1 4084|11664|972|8|207696
LAMMPS_atomic icount 145 DIM1 2157|6960|580|8|110496
LAMMPS_atomic icount 114 DIM1 1217|5472|456|8|63888
SPECFEM3D_oc icount 3225 DIM1 88881|12900|3225|4|355524
SPECFEM3D_oc icount 1897 DIM1 38585|7588|1897|4|154340
SPECFEM3D_oc icount 877 DIM1 12857|3508|877|4|51428
SPECFEM3D_oc icount 493 DIM1 3697|1972|493|4|14788
SPECFEM3D_cm icount 11797+3009 DIM2 834917,51153|177672|14806|12|10632840
SPECFEM3D_cm icount 7125+1729 DIM2 396849,22477|106248|8854|12|5031912
SPECFEM3D_cm icount 3801+801 DIM2 152001,7209|55224|4602|12|1910520
SPECFEM3D_cm icount 1957+245 DIM2 39929,1225|26424|2202|12|493848
SPECFEM3D_mt 3x2x7600|91200|7600|12|182400
SPECFEM3D_mt 3x2x6400|76800|6400|12|153600
SPECFEM3D_mt 3x2x5600|67200|5600|12|134400
SPECFEM3D_mt 3x2x6200|74400|6200|12|148800
FFT2 N=256 P=2|524288|32768|16|524288
FFT2 N=512 P=2|2097152|131072|16|2097152
FFT2 N=768 P=2|4718592|294912|16|4718592
FFT2 N=1024 P=2|8388608|524288|16|8388608
FFT2 N=1536 P=2|18874368|1179648|16|18874368
)";

struct Figures {
  std::int64_t payload, segments, shortest, span;
};

// By "family dims"; the two ways to write WRF share their figures.
std::map<std::string, Figures> figures() {
  std::map<std::string, Figures> rows;
  std::istringstream lines{kFigures};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    Figures row{};
    const std::size_t bar = line.find('|');
    EXPECT_EQ(std::sscanf(line.c_str() + bar, "|%ld|%ld|%ld|%ld", &row.payload, &row.segments, &row.shortest, &row.span), 4) << line;
    rows[line.substr(0, bar)] = row;
  }
  return rows;
}

std::string without_form(std::string name) {
  for (const char* form : {"_vec", "_sa"}) {
    if (const std::size_t at = name.find(form); at != std::string::npos) name.resize(at);
  }
  return name;
}

std::vector<DdtCase> all_cases() {
  std::vector<DdtCase> cases;
  for (const std::string& family : corpus::ddtbench_families()) {
    for (int i = 0; i < corpus::ddtbench_sizes(family); ++i) cases.push_back(value(corpus::ddtbench(family, i), family));
  }
  return cases;
}

// --- where the layouts differ from the published figures -------------------------------------------------------------

// A shuffled list holds i, i + 1 in succession about once. Those two elements are neighbours in the array too: one
// segment, where the published figures count two.
std::int64_t chance_neighbours(const DdtCase& c) {
  std::int64_t pairs = 0;
  for (const support::DdtList& chosen : support::ddtbench_lists(c)) {
    for (std::size_t i = 1; i < chosen.list.size(); ++i) pairs += chosen.list[i] == chosen.list[i - 1] + 1 ? chosen.arrays : 0;
  }
  return pairs;
}

// How the receiving side differs from the published (sending) side, and FFT2's sending side from its published scatter.
std::int64_t send_segments(const DdtCase& c, std::int64_t published) {
  long n = 0;
  if (std::sscanf(c.dims.c_str(), "N=%ld", &n) == 1) return n;  // N / P rows for each of P peers
  return published - chance_neighbours(c);
}
std::int64_t receive_segments(const DdtCase& c, std::int64_t published) {
  if (c.name == "LAMMPS_full") return 6;    // the tails of x, tag, type, mask, q, molecule
  if (c.name == "LAMMPS_atomic") return 4;  // the tails of x, tag, type, mask
  if (c.name == "SPECFEM3D_mt") return 1;   // dense
  return published - chance_neighbours(c);
}

TEST(DdtBench, HasThePublishedFigures) {
  const auto rows = figures();
  ASSERT_EQ(rows.size(), 61u);
  std::map<std::string, int> seen;
  for (const DdtCase& c : all_cases()) {
    const std::string key = without_form(c.name) + " " + c.dims;
    ASSERT_TRUE(rows.contains(key)) << key;
    ++seen[key];
    const Figures& row = rows.at(key);
    EXPECT_EQ(c.send.size(), row.payload) << key;
    EXPECT_EQ(c.receive.size(), row.payload) << key;
    EXPECT_EQ(c.send.run_count(), send_segments(c, row.segments)) << key;
    EXPECT_EQ(c.receive.run_count(), receive_segments(c, row.segments)) << key;
    EXPECT_EQ(std::ranges::min(runs_of(c.name == "FFT2" ? c.receive : c.send), {}, &layout::Run::length).length, row.shortest) << key;
    // Each array starts at a multiple of 64 bytes, which the published sums leave out; nine arrays at most.
    EXPECT_GE(c.send_span, row.span) << key;
    EXPECT_LT(c.send_span, row.span + 9 * 64) << key;
  }
  for (const auto& [key, row] : rows) EXPECT_EQ(seen[key], key.starts_with("WRF") ? 2 : 1) << key;
}

TEST(DdtBench, StaysWithinItsSpans) {
  for (const DdtCase& c : all_cases()) {
    for (const auto& [layout, span] : {std::pair{&c.send, c.send_span}, std::pair{&c.receive, c.receive_span}}) {
      EXPECT_GE(layout->true_lower_bound(), 0) << c.name << " " << c.dims;
      EXPECT_LE(layout->true_lower_bound() + layout->true_extent(), span) << c.name << " " << c.dims;
    }
    EXPECT_FALSE(value(c.receive.overlaps(), c.name)) << c.name << " " << c.dims;
    EXPECT_FALSE(value(c.send.overlaps(), c.name)) << c.name << " " << c.dims;
  }
}

TEST(DdtBench, LoopsStayLoops) {
  for (const DdtCase& c : all_cases()) {
    for (const Layout* layout : {&c.send, &c.receive}) {
      std::size_t entries = 0;
      if (layout == &c.send || c.name.starts_with("SPECFEM")) {
        for (const support::DdtList& chosen : support::ddtbench_lists(c))
          entries += chosen.list.size() * static_cast<std::size_t>(chosen.arrays);
      }
      // A difference of two random offsets takes up to four bytes, and a length one more.
      EXPECT_LE(layout::encode(*layout).size(), 200 + 5 * entries) << c.name << " " << c.dims << ": " << layout->describe();
    }
  }
}

TEST(DdtBench, VectorsAndSubarraysAreOneForm) {
  for (const char* direction : {"WRF_y", "WRF_x"}) {
    for (int i = 0; i < corpus::ddtbench_sizes(direction + std::string("_vec")); ++i) {
      const DdtCase vectors = value(corpus::ddtbench(direction + std::string("_vec"), i));
      const DdtCase subarrays = value(corpus::ddtbench(direction + std::string("_sa"), i));
      EXPECT_EQ(vectors.send.describe(), subarrays.send.describe());
      EXPECT_EQ(vectors.send.digest(), subarrays.send.digest());
      EXPECT_EQ(vectors.receive.digest(), subarrays.receive.digest());
    }
  }
}

TEST(DdtBench, FlatListsAreTheSameForm) {
  for (const DdtCase& c : all_cases()) {
    for (const Layout* layout : {&c.send, &c.receive}) {
      if (layout->run_count() > 200'000) continue;  // FFT2's larger ones: the same nest with other counts
      List offsets;
      List lengths;
      for (const layout::Run& run : runs_of(*layout)) {
        offsets.push_back(run.offset);
        lengths.push_back(run.length);
      }
      const Layout flat = value(Layout::blocks(offsets, lengths));
      EXPECT_EQ(flat.describe(), layout->describe()) << c.name << " " << c.dims;
      EXPECT_EQ(flat.digest(), layout->digest()) << c.name << " " << c.dims;
    }
  }
}

TEST(DdtBench, EqualsItsLoopNest) {
  for (const DdtCase& c : all_cases()) {
    EXPECT_TRUE(runs_of(c.send) == support::ddtbench_nest(c, false)) << c.name << " " << c.dims << ": " << c.send.describe();
    EXPECT_TRUE(runs_of(c.receive) == support::ddtbench_nest(c, true)) << c.name << " " << c.dims << ": " << c.receive.describe();
  }
}

// --- the lists themselves --------------------------------------------------------------------------------------------

TEST(DdtBench, ListsArePartsOfAPermutation) {
  for (const auto& [n, count] : {std::pair{3534, 3062}, std::pair{10, 10}, std::pair{5, 0}, std::pair{1, 1}}) {
    List list = corpus::ddtbench_list(n, count, 2012);
    ASSERT_EQ(std::ssize(list), count);
    std::ranges::sort(list);
    EXPECT_EQ(std::ranges::adjacent_find(list), list.end());
    if (count > 0) {
      EXPECT_GE(list.front(), 0);
      EXPECT_LT(list.back(), n);
    }
  }
}

TEST(DdtBench, ListsNeverChange) {
  EXPECT_EQ(corpus::ddtbench_list(8, 8, 1), (List{1, 0, 2, 3, 5, 7, 4, 6}));
  const List list = corpus::ddtbench_list(834917, 11797, 2012);
  EXPECT_EQ((List{list[0], list[1], list[11796]}), (List{357664, 801739, 64401}));
}

TEST(DdtBench, UnknownNamesAndSizesAreErrors) {
  EXPECT_EQ(corpus::ddtbench_families().size(), 16u);
  EXPECT_EQ(corpus::ddtbench_sizes("NAS_XY"), 0);
  for (const auto& result : {corpus::ddtbench("NAS_XY", 0), corpus::ddtbench("FFT2", 5), corpus::ddtbench("FFT2", -1)}) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, base::Code::invalid_argument);
  }
  EXPECT_EQ(value(corpus::ddtbench("FFT2", 0)).name, "FFT2");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
