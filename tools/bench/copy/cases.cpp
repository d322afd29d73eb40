#include "tools/bench/copy/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "tools/corpus/ddtbench.hpp"

namespace lacuna::bench {

using corpus::Datatype;
using List = std::vector<std::int64_t>;

Side side_of(Datatype type, std::int64_t span, std::int64_t base) {
  Side side{.type = std::move(type), .layout = {}, .span = span, .base = base, .nests = {}, .records = {}, .drawn = {}};
  side.layout = side.type.layout().value();
  std::optional<std::vector<HandNest>> nests = nests_of(side.type);
  if (!nests) throw std::logic_error("no hand loop for a datatype of the benchmark");
  side.nests = std::move(*nests);
  return side;
}

namespace {

Case ddt_case(const CaseEntry& entry) {
  corpus::DdtCase ddt = corpus::ddtbench(entry.family, static_cast<int>(entry.a)).value();
  return {entry.group, entry.name, entry.family, side_of(std::move(ddt.send_type), ddt.send_span),
          side_of(std::move(ddt.receive_type), ddt.receive_span)};
}

// `bytes` as a program would have them: of the largest basic type that divides them, up to doubles.
Datatype block_of(std::int64_t bytes) {
  const std::int64_t element = std::min<std::int64_t>(bytes & -bytes, 8);
  return bytes == element ? Datatype::basic(bytes) : Datatype::contiguous(bytes / element, Datatype::basic(element));
}

// Entry a: bytes of a block; b: bytes of payload.
Case strided(const CaseEntry& entry) {
  const std::int64_t count = entry.b / entry.a;
  Side side = side_of(Datatype::vector(count, 1, 2, block_of(entry.a)), 2 * count * entry.a);
  return {entry.group, entry.name, entry.family, side, side};
}
Case backwards(const CaseEntry& entry) {
  const std::int64_t count = entry.b / entry.a;
  Side side = side_of(Datatype::hvector(count, 1, -2 * entry.a, block_of(entry.a)), 2 * count * entry.a, 2 * (count - 1) * entry.a);
  return {entry.group, entry.name, entry.family, side, side};
}

// A list of `count` of four times as many blocks.
List list_of(std::int64_t count, bool sorted) {
  List list = corpus::ddtbench_list(4 * count, count, 77);
  if (sorted) std::ranges::sort(list);
  return list;
}
Case listed(const CaseEntry& entry) {
  const std::int64_t count = entry.b / entry.a;
  Side side = side_of(Datatype::indexed_block(1, list_of(count, entry.family == "sorted list"), block_of(entry.a)), 4 * count * entry.a);
  return {entry.group, entry.name, entry.family, side, side};
}

// Blocks of 1 to a bytes in a random order.
Case lengths(const CaseEntry& entry) {
  std::mt19937_64 random(5);  // NOLINT(bugprone-random-generator-seed): the same lengths always
  List sizes;
  std::int64_t bytes = 0;
  while (bytes < entry.b) {
    sizes.push_back(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(entry.a)));
    bytes += sizes.back();
  }
  const auto count = static_cast<std::int64_t>(sizes.size());
  const std::int64_t pitch = entry.a + 8;
  List places = corpus::ddtbench_list(count, count, 78);
  for (std::int64_t& place : places) place *= pitch;
  Side side = side_of(Datatype::indexed(sizes, places, Datatype::basic(1)), count * pitch);
  return {entry.group, entry.name, entry.family, side, side};
}

Case records(const CaseEntry& entry) {
  const auto record = static_cast<Record>(entry.b);
  const bool all = entry.family == "structs";
  const std::int64_t count = entry.a;
  const Datatype one = record_type(record);
  Records which{record, count, {}};
  Datatype type = Datatype::contiguous(count, one);
  if (!all) {
    const List list = list_of(count, false);
    which.list.assign(list.begin(), list.end());
    type = Datatype::indexed_block(1, list, one);
  }
  Side side{.type = std::move(type),
            .layout = {},
            .span = record_extent(record) * count * (all ? 1 : 4),
            .base = 0,
            .nests = {},
            .records = std::move(which),
            .drawn = {}};
  side.layout = side.type.layout().value();
  return {entry.group, entry.name, entry.family, side, side};
}

// A matrix of n x n elements of a bytes, read by columns: the order that a transpose asks for.
Case columns(const CaseEntry& entry) {
  const std::int64_t n = entry.b;
  const Datatype column = Datatype::vector(n, 1, n, block_of(entry.a));
  Side by_column = side_of(Datatype::contiguous(n, Datatype::resized(column, 0, entry.a)), n * n * entry.a);
  // The other side is the same matrix in tiles' clothing: rows with a gap behind each.
  Side by_row = side_of(Datatype::vector(n, n, n + 8, block_of(entry.a)), n * (n + 8) * entry.a);
  return {entry.group, entry.name, entry.family, by_column, by_row};
}

std::vector<CaseEntry> make_entries() {
  std::vector<CaseEntry> all;
  for (const std::string& family : corpus::ddtbench_families()) {
    for (int size = 0; size < corpus::ddtbench_sizes(family); ++size)
      all.push_back({"ddtbench", fmt::format("{} {}", family, corpus::ddtbench(family, size).value().dims), &ddt_case, family, size});
  }
  const auto add = [&](Case (*make)(const CaseEntry&), const std::string& family, std::int64_t block, std::int64_t bytes) {
    all.push_back({"irregular", fmt::format("{} of {} B, {} KiB", family, block, bytes >> 10), make, family, block, bytes});
  };
  for (const std::int64_t block : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64}) {
    const std::int64_t bytes = block < 8 ? 16 << 10 : 64 << 10;
    add(&strided, "vector", block, bytes);
    add(&listed, "random list", block, bytes);
    add(&listed, "sorted list", block, bytes);
  }
  for (const std::int64_t block : {4, 8, 12, 32, 64, 256}) {
    add(&strided, "vector", block, 1 << 20);
    add(&listed, "random list", block, 1 << 20);
  }
  for (const std::int64_t block : {4, 24}) add(&backwards, "negative stride", block, 64 << 10);
  for (const std::int64_t longest : {16, 64, 400})
    all.push_back({"irregular", fmt::format("random lengths up to {} B, 64 KiB", longest), &lengths, "random lengths", longest, 64 << 10});
  const char* names[] = {"29 of 40 B", "12 of 16 B", "28 of 56 B"};
  for (int record = 0; record < 3; ++record) {
    for (const char* family : {"structs", "listed structs"})
      all.push_back({"irregular", fmt::format("{}, {}, x 4096", family, names[record]), &records, family, 4096, record});
  }
  for (const auto& [block, n] : {std::pair{4, 512}, {8, 512}, {8, 300}, {16, 256}, {24, 200}})
    all.push_back({"irregular", fmt::format("columns of {} B, {} x {}", block, n, n), &columns, "columns", block, n});
  return all;
}

}  // namespace

const std::vector<CaseEntry>& cases() {
  static const std::vector<CaseEntry> all = make_entries();
  return all;
}

std::vector<Equivalents> equivalents() {
  std::vector<Equivalents> all;
  const Datatype number = Datatype::basic(8);
  {
    Equivalents e{"a column of 4096 doubles in rows of 64", {}, {}};
    List regular;
    for (std::int64_t i = 0; i < 4096; ++i) regular.push_back(64 * i);
    const std::int64_t span = std::int64_t{8} * 64 * 4096;
    e.ways = {"vector", "hvector", "indexed_block", "subarray", "contiguous of resized"};
    e.sides = {side_of(Datatype::vector(4096, 1, 64, number), span), side_of(Datatype::hvector(4096, 1, 512, number), span),
               side_of(Datatype::indexed_block(1, regular, number), span),
               side_of(Datatype::subarray({4096, 64}, {4096, 1}, {0, 0}, layout::Order::c, number), span),
               side_of(Datatype::contiguous(4096, Datatype::resized(number, 0, 512)), span)};
    all.push_back(std::move(e));
  }
  {
    Equivalents e{"a box of 64 x 32 x 16 doubles in 128 x 64 x 32", {}, {}};
    const std::int64_t span = std::int64_t{8} * 128 * 64 * 32;
    List rows;
    for (std::int64_t k = 0; k < 64; ++k)
      for (std::int64_t j = 0; j < 32; ++j) rows.push_back(k * 64 * 32 + j * 32);
    e.ways = {"subarray", "hvector of vector", "indexed", "indexed_block"};
    e.sides = {side_of(Datatype::subarray({128, 64, 32}, {64, 32, 16}, {0, 0, 0}, layout::Order::c, number), span),
               side_of(Datatype::hvector(64, 1, 8 * 64 * 32, Datatype::vector(32, 16, 32, number)), span),
               side_of(Datatype::indexed(List(rows.size(), 16), rows, number), span),
               side_of(Datatype::indexed_block(16, rows, number), span)};
    all.push_back(std::move(e));
  }
  {
    Equivalents e{"4096 random triples of floats", {}, {}};
    const List list = list_of(4096, false);
    List in_floats = list;
    List in_bytes = list;
    for (std::int64_t& at : in_floats) at *= 3;
    for (std::int64_t& at : in_bytes) at *= 12;
    const Datatype value = Datatype::basic(4);
    const std::int64_t span = std::int64_t{12} * 4 * 4096;
    e.ways = {"indexed_block of 3", "indexed", "hindexed_block", "indexed_block of contiguous"};
    e.sides = {side_of(Datatype::indexed_block(3, in_floats, value), span),
               side_of(Datatype::indexed(List(list.size(), 3), in_floats, value), span),
               side_of(Datatype::hindexed_block(3, in_bytes, value), span),
               side_of(Datatype::indexed_block(1, list, Datatype::contiguous(3, value)), span)};
    all.push_back(std::move(e));
  }
  return all;
}

}  // namespace lacuna::bench
