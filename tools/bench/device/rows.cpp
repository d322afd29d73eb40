#include "tools/bench/device/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tools/corpus/ai.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::bench {
namespace {

using layout::Layout;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kMostSpan = std::int64_t{1} << 30;

Layout bytes(std::int64_t count) { return Layout::bytes(count).value(); }

std::int64_t item_of(std::int64_t length) { return std::min<std::int64_t>(length & -length, 16); }

DeviceRow pack(const RowMaker& maker, const Layout& layout, ArrayForm array = {}) {
  return {maker.group, "pack " + maker.name, layout, bytes(layout.size()), std::move(array), {}};
}
DeviceRow unpack(const RowMaker& maker, const Layout& layout, ArrayForm array = {}) {
  return {maker.group, "unpack " + maker.name, bytes(layout.size()), layout, {}, std::move(array)};
}
DeviceRow one_way(const RowMaker& maker, const Layout& layout, ArrayForm array) {
  return maker.text == "unpack" ? unpack(maker, layout, std::move(array)) : pack(maker, layout, std::move(array));
}

// Blocks of a bytes, b bytes apart.
DeviceRow vector(const RowMaker& m, std::int64_t payload) {
  const std::int64_t count = std::min(payload / m.a, kMostSpan / m.b);
  const std::int64_t item = item_of(m.a | m.b);
  return one_way(m, Layout::hvector(count, 1, m.b, bytes(m.a)).value(), {item, {count, m.a / item}, {m.b / item, 1}, 0});
}

// Blocks of a bytes at places of a list, one of b: pages of a cache.
DeviceRow listed(const RowMaker& m, std::int64_t payload) {
  const std::int64_t count = std::min(payload / m.a, kMostSpan / m.a / m.b);
  const List pages = corpus::ddtbench_list(count * m.b, count, 7);
  const std::int64_t item = item_of(m.a);
  return one_way(m, Layout::paged(m.a, pages).value(), {item, {count, m.a / item}, {m.a / item, 1}, count * m.b});
}

// Blocks of a to b bytes, multiples of item, in a random order.
Layout ragged_of(std::int64_t least, std::int64_t most, std::int64_t multiple, std::int64_t payload) {
  std::mt19937_64 random(3);  // NOLINT(bugprone-random-generator-seed): the same lengths always
  List lengths;
  for (std::int64_t left = payload; left > 0; left -= lengths.back())
    lengths.push_back((least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1))) / multiple * multiple);
  List places(lengths.size());
  List order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  std::int64_t at = 0;
  for (const std::int64_t i : order) {
    places[static_cast<std::size_t>(i)] = at;
    at += lengths[static_cast<std::size_t>(i)] + 3 * multiple;
  }
  return Layout::blocks(places, lengths).value();
}
DeviceRow ragged(const RowMaker& m, std::int64_t payload) {
  const std::int64_t multiple = m.name.find("odd") != std::string::npos ? 1 : 4;
  return one_way(m, ragged_of(m.a, m.b, multiple, payload), {});
}

// An n x n matrix of items of a bytes, by columns.
DeviceRow columns(const RowMaker& m, std::int64_t payload) {
  std::int64_t n = 1;
  while ((n + 1) * (n + 1) * m.a <= payload) ++n;
  n = m.b != 0 ? n / m.b * m.b : n | 1;
  return one_way(m, Layout::strided(m.a, std::array{n, n}, std::array{m.a, n * m.a}).value(), {m.a, {n, n}, {1, n}, 0});
}

// [x][y][z] read as [z][y][x], and as [y][x][z], items of a bytes.
DeviceRow permuted(const RowMaker& m, std::int64_t payload) {
  std::int64_t n = 8;
  while ((n + 8) * (n + 8) * (n + 8) * m.a <= payload) n += 8;
  const List strides = m.b == 0 ? List{1, n, n * n} : List{n, n * n, 1};
  List in_bytes = strides;
  for (std::int64_t& stride : in_bytes) stride *= m.a;
  return one_way(m, Layout::strided(m.a, std::array{n, n, n}, in_bytes).value(), {m.a, {n, n, n}, strides, 0});
}

// Arrays of structs, a bytes of every b, at several offsets.
DeviceRow structs(const RowMaker& m, std::int64_t payload) {
  const Layout one = m.b == 40 ? Layout::blocks(std::array<std::int64_t, 4>{0, 8, 24, 32}, std::array<std::int64_t, 4>{4, 8, 8, 8}).value()
                               : Layout::blocks(std::array<std::int64_t, 3>{0, 12, 36}, std::array<std::int64_t, 3>{8, 12, 8}).value();
  return one_way(m, Layout::hvector(payload / one.size(), 1, m.b, one).value(), {});
}

// One family of DDTBench at its largest size, as many messages of it as make the payload.
DeviceRow ddtbench(const RowMaker& m, std::int64_t payload) {
  std::optional<corpus::DdtCase> largest;
  for (int size = 0; size < corpus::ddtbench_sizes(m.text); ++size) {
    auto sized = corpus::ddtbench(m.text, size).value();
    if (!largest || sized.send.size() > largest->send.size()) largest = std::move(sized);
  }
  const auto many = [&](const Layout& layout, std::int64_t span) {
    const std::int64_t pitch = (span + 255) / 256 * 256;
    const std::int64_t wanted = (payload + layout.size() - 1) / layout.size();
    const std::int64_t most = kMostSpan / ((std::max(largest->send_span, largest->receive_span) + 255) / 256 * 256);
    return Layout::hvector(std::min(wanted, most), 1, pitch, layout).value();
  };
  const Layout from = many(largest->send, largest->send_span);
  const Layout to = many(largest->receive, largest->receive_span);
  if (m.a == 0) return pack(m, from);
  if (m.a == 1) return unpack(m, to);
  return {m.group, "move " + m.name, from, to, {}, {}};
}

DeviceRow ai(const RowMaker& m, std::int64_t payload) {
  corpus::Case made = corpus::ai_case(m.text, payload).value();
  if (m.a == 0) return pack(m, made.send);
  if (m.a == 1) return unpack(m, made.receive);
  return {m.group, "move " + m.name, made.send, made.receive, {}, {}};
}

// Pages of a bytes, one of b, from one list to another.
DeviceRow pages(const RowMaker& m, std::int64_t payload) {
  const std::int64_t count = std::min(payload / m.a, kMostSpan / m.a / m.b);
  return {m.group,
          "move " + m.name,
          Layout::paged(m.a, corpus::ddtbench_list(count * m.b, count, 7)).value(),
          Layout::paged(m.a, corpus::ddtbench_list(count * m.b, count, 8)).value(),
          {},
          {}};
}

// A matrix of items of a bytes into its transpose.
DeviceRow transpose(const RowMaker& m, std::int64_t payload) {
  DeviceRow row = columns(m, payload);
  row.name = "move " + m.name;
  const std::int64_t n = row.from_array.shape[0];
  row.to = Layout::hvector(n, 1, (n + 16) * m.a, bytes(n * m.a)).value();
  row.from_array = {};
  return row;
}

// Of b bytes, whatever payload is asked for: blocks of a bytes, and half of the pages of a bytes.
DeviceRow sized_vector(const RowMaker& m, std::int64_t /*payload*/) {
  return pack(m, Layout::hvector(m.b / m.a, 1, 2 * m.a, bytes(m.a)).value(), {16, {m.b / m.a, m.a / 16}, {m.a / 8, 1}, 0});
}
DeviceRow sized_pages(const RowMaker& m, std::int64_t /*payload*/) {
  const std::int64_t page = std::min(m.a, m.b);
  return pack(m, Layout::paged(page, corpus::ddtbench_list(2 * m.b / page, m.b / page, 7)).value(),
              {16, {m.b / page, page / 16}, {page / 16, 1}, 2 * m.b / page});
}

// Blocks of so many bytes, from the beginning of one to that of the next.
constexpr std::pair<std::int64_t, std::int64_t> kVectors[] = {
    {1, 2},     {1, 64},    {2, 4},      {3, 4},       {4, 8},       {4, 64},      {8, 16},      {8, 64},         {8, 4096},
    {12, 16},   {16, 32},   {16, 64},    {24, 40},     {32, 64},     {48, 80},     {64, 128},    {100, 132},      {128, 256},
    {128, 260}, {333, 500}, {512, 1024}, {1000, 1100}, {1024, 2048}, {4096, 8192}, {4097, 8191}, {65536, 131072}, {1 << 20, 1 << 21}};

using Rows = std::vector<RowMaker>;

void add_both(Rows& rows, const char* group, const std::string& name, decltype(RowMaker::make) make, std::int64_t a, std::int64_t b) {
  for (const char* way : {"pack", "unpack"}) rows.push_back({group, name, make, a, b, way});
}

void add_irregular(Rows& rows) {
  for (const std::int64_t block : {4, 8, 16, 64, 128, 576, 1024, 4096, 16384, 65536})
    add_both(rows, "lists", fmt::format("list of {} B, 1 of 4", block), &listed, block, 4);
  add_both(rows, "unequal", "4 to 64 B", &ragged, 4, 64);
  add_both(rows, "unequal", "32 to 1000 B", &ragged, 32, 1000);
  add_both(rows, "unequal", "1 to 1000 B, odd", &ragged, 1, 1000);
  add_both(rows, "unequal", "1000 to 100000 B", &ragged, 1000, 100000);
  add_both(rows, "structs", "28 of 40 B", &structs, 28, 40);
  add_both(rows, "structs", "28 of 56 B", &structs, 28, 56);
}

void add_transposes(Rows& rows) {
  for (const std::int64_t item : {1, 2, 4, 8, 16}) {
    add_both(rows, "transposes", fmt::format("columns of {} B", item), &columns, item, 64);
    add_both(rows, "transposes", fmt::format("columns of {} B, odd", item), &columns, item, 0);
    rows.push_back({"transposes", fmt::format("transpose of {} B", item), &transpose, item, 64, "pack"});
  }
  for (const std::int64_t item : {4, 8}) {
    add_both(rows, "transposes", fmt::format("xyz to zyx of {} B", item), &permuted, item, 0);
    add_both(rows, "transposes", fmt::format("xyz to yzx of {} B", item), &permuted, item, 1);
  }
}

void add_sizes(Rows& rows) {
  for (int size = 12; size <= 28; size += 4) {
    const std::string text = size < 20 ? fmt::format("{} KiB", (1 << size) >> 10) : fmt::format("{} MiB", (1 << size) >> 20);
    rows.push_back({"sizes", "pages of 16 KiB, " + text, &sized_pages, 16384, 1 << size, "pack"});
    rows.push_back({"sizes", "64 B of 128, " + text, &sized_vector, 64, 1 << size, "pack"});
  }
}

void add_applications(Rows& rows) {
  for (const std::int64_t page : {2048, 16384, 65536})
    rows.push_back({"ai", fmt::format("pages of {} B, 1 of 4", page), &pages, page, 4, ""});
  for (const corpus::AiTransfer& transfer : corpus::ai_transfers()) {
    for (const int way : {0, 1, 2}) rows.push_back({"ai", std::string(transfer.name), &ai, way, 0, std::string(transfer.name)});
  }
  for (const std::string& family : corpus::ddtbench_families()) {
    for (const int way : {0, 1, 2}) rows.push_back({"ddtbench", family, &ddtbench, way, 0, family});
  }
}

}  // namespace

std::vector<RowMaker> device_rows() {
  Rows rows;
  for (const auto& [a, b] : kVectors) add_both(rows, "vectors", fmt::format("{} B of {}", a, b), &vector, a, b);
  add_irregular(rows);
  add_transposes(rows);
  add_sizes(rows);
  add_applications(rows);
  return rows;
}

std::vector<Layout> faces(std::int64_t n) {
  std::vector<Layout> all;
  const std::int64_t sizes[3] = {n + 2, n + 2, n + 2};
  const Layout number = bytes(8);
  for (int x = -1; x <= 1; ++x) {
    for (int y = -1; y <= 1; ++y) {
      for (int z = -1; z <= 1; ++z) {
        if (x == 0 && y == 0 && z == 0) continue;
        std::int64_t box[3];
        std::int64_t start[3];
        const int side[3] = {x, y, z};
        for (int d = 0; d < 3; ++d) {
          box[d] = side[d] == 0 ? n : 1;
          start[d] = side[d] > 0 ? n : 1;
        }
        all.push_back(Layout::subarray(sizes, box, start, layout::Order::c, number).value());
      }
    }
  }
  return all;
}

}  // namespace lacuna::bench
