// Grid and DDTBench cases.
#include "tools/corpus/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/corpus/ddtbench.hpp"

namespace lacuna::corpus {
namespace {

constexpr std::int64_t kGap = 2;  // between blocks, in blocks: the paper's Table 4
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;

Result<Layout> blocks(std::int64_t bytes, std::int64_t count, std::int64_t gap) {
  return Layout::hvector(count, 1, bytes + gap, LACUNA_TRY(Layout::bytes(bytes)));
}

std::int64_t span_of(const Layout& layout) { return layout.true_lower_bound() + layout.true_extent(); }

}  // namespace

std::int64_t cache_bytes() { return std::max<std::int64_t>(base::machine().llc_bytes, 32 << 20); }

Result<Shape> shape_from_name(std::string_view name) {
  if (name == "symmetric") return Shape::symmetric;
  if (name == "sender_finer") return Shape::sender_finer;
  if (name == "sender_coarser") return Shape::sender_coarser;
  return base::fail(base::Code::invalid_argument, fmt::format("no shape \"{}\"; there are: symmetric, sender_finer, sender_coarser", name));
}

namespace {

struct Ratio {  // of the sender's blocks to the receiver's
  std::int64_t finer, coarser;
};

Result<Ratio> ratio_of(std::int64_t block_bytes, std::int64_t block_count, Shape shape) {
  const Ratio ratio{shape == Shape::sender_finer ? 4 : 1, shape == Shape::sender_coarser ? 2 : 1};
  if (block_bytes < 1 || block_count < 1 || block_bytes % ratio.finer != 0 || block_count % ratio.coarser != 0) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} blocks of {} bytes do not divide into the sender's ({} times as many, {} times as large)",
                                  block_count, block_bytes, ratio.finer, ratio.coarser));
  }
  return ratio;
}

Case case_of(Layout send, Layout receive, std::int64_t block_bytes, std::int64_t block_count) {
  Case result;
  result.name = fmt::format("{} x {} B", block_count, block_bytes);
  result.send_span = span_of(send);
  result.receive_span = span_of(receive);
  result.send = std::move(send);
  result.receive = std::move(receive);
  result.block_bytes = block_bytes;
  result.block_count = block_count;
  return result;
}

}  // namespace

Result<Case> grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape) {
  const auto [finer, coarser] = LACUNA_TRY(ratio_of(block_bytes, block_count, shape));
  const std::int64_t send_bytes = block_bytes / finer * coarser;
  return case_of(LACUNA_TRY(blocks(send_bytes, block_count * finer / coarser, kGap * send_bytes)),
                 LACUNA_TRY(blocks(block_bytes, block_count, kGap * block_bytes)), block_bytes, block_count);
}

Result<Case> cold_grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape) {
  return cold_grid_case_beyond(cache_bytes(), block_bytes, block_count, shape);
}

Result<Case> cold_grid_case_beyond(std::int64_t cache, std::int64_t block_bytes, std::int64_t block_count, Shape shape) {
  const auto [finer, coarser] = LACUNA_TRY(ratio_of(block_bytes, block_count, shape));
  const std::int64_t send_bytes = block_bytes / finer * coarser;
  const std::int64_t send_count = block_count * finer / coarser;
  // A block owns its lines and one more, which stays untouched. A stride of an odd number of lines spreads the blocks
  // over the sets of a cache.
  const auto lines = [](std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  const std::int64_t touched = std::min(send_count * lines(send_bytes), block_count * lines(block_bytes));
  // Each side's lines once, so both sides' twice
  const std::int64_t copies = std::max<std::int64_t>(2, cache / touched + 1);
  const auto stride = [&](std::int64_t bytes) { return std::max(copies * (lines(bytes) + kLine), kPage + lines(bytes)) | kLine; };
  Case what = case_of(LACUNA_TRY(blocks(send_bytes, send_count, stride(send_bytes) - send_bytes)),
                      LACUNA_TRY(blocks(block_bytes, block_count, stride(block_bytes) - block_bytes)), block_bytes, block_count);
  what.copies = copies;
  what.send_slot = lines(send_bytes) + kLine;
  what.receive_slot = lines(block_bytes) + kLine;
  what.shared_gaps = true;
  return what;
}

Case cold(Case what) { return cold_beyond(cache_bytes(), std::move(what)); }

Case cold_beyond(std::int64_t cache, Case what) {
  constexpr std::int64_t most_memory = 256 << 20;
  const auto touched = [](const Layout& layout, std::int64_t span) { return std::min(span, layout.size() + kLine * layout.run_count()); };
  const auto slot = [](std::int64_t span) { return (span + 2 * kPage) / kPage * kPage + kPage; };
  what.send_slot = slot(what.send_span);
  what.receive_slot = slot(what.receive_span);
  const std::int64_t lines = std::max(kLine, std::min(touched(what.send, what.send_span), touched(what.receive, what.receive_span)));
  const std::int64_t room = most_memory / std::max(what.send_slot, what.receive_slot);
  what.copies = std::max<std::int64_t>(2, std::min(cache / lines + 1, room));
  return what;
}

Result<Case> blocks_case(std::int64_t block_bytes, std::int64_t block_count, std::int64_t gap_bytes, Shape shape, bool to_contiguous) {
  if (gap_bytes < 0) return base::fail(base::Code::invalid_argument, fmt::format("a gap of {} bytes", gap_bytes));
  const auto [finer, coarser] = LACUNA_TRY(ratio_of(block_bytes, block_count, shape));
  const std::int64_t send_count = block_count * finer / coarser;
  Layout send = LACUNA_TRY(blocks(block_bytes / finer * coarser, send_count, gap_bytes));
  Layout receive = to_contiguous ? LACUNA_TRY(Layout::bytes(send.size())) : LACUNA_TRY(blocks(block_bytes, block_count, gap_bytes));
  return case_of(std::move(send), std::move(receive), block_bytes, block_count);
}

Result<Case> stencil_case(std::int64_t points, std::int64_t point_bytes) {
  constexpr std::int64_t row = 1000;
  if (points < 5 || points % 4 != 1 || points >= row || point_bytes < 1)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a stencil of {} points of {} bytes; it has 4k + 1 points", points, point_bytes));
  const std::int64_t reach = points / 4;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> offsets;
  for (std::int64_t y = -reach; y <= reach; ++y) {
    lengths.push_back(y == 0 ? (2 * reach + 1) * point_bytes : point_bytes);
    offsets.push_back(((y + reach) * row + (y == 0 ? 0 : reach)) * point_bytes);
  }
  const Layout cross = LACUNA_TRY(Layout::blocks(offsets, lengths));
  Case result = case_of(cross, cross, cross.size() / std::ssize(lengths), std::ssize(lengths));
  result.name = fmt::format("{}-point stencil, {} B", points, point_bytes);
  return result;
}

Result<Case> ddtbench_case(const std::string& family, int size) {
  DdtCase ddt = LACUNA_TRY(ddtbench(family, size));
  Case result;
  result.name = fmt::format("{} {}", family, ddt.dims);
  result.block_count = std::max(ddt.send.run_count(), ddt.receive.run_count());
  result.block_bytes = ddt.send.size() / std::max<std::int64_t>(1, result.block_count);
  result.send = std::move(ddt.send);
  result.receive = std::move(ddt.receive);
  result.send_span = ddt.send_span;
  result.receive_span = ddt.receive_span;
  return result;
}

}  // namespace lacuna::corpus
