// Grid and DDTBench cases.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/guide/ddtbench.hpp"
#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

constexpr std::int64_t kGap = 2;  // between blocks, in blocks: the seeds' Table 4

Result<Layout> blocks_with_gaps(std::int64_t bytes, std::int64_t count) {
  return Layout::hvector(count, 1, bytes * (1 + kGap), LACUNA_TRY(Layout::bytes(bytes)));
}

std::int64_t span_of(const Layout& layout) { return layout.true_lower_bound() + layout.true_extent(); }

}  // namespace

Result<Shape> shape_from_name(std::string_view name) {
  if (name == "symmetric") return Shape::symmetric;
  if (name == "sender_finer") return Shape::sender_finer;
  if (name == "sender_coarser") return Shape::sender_coarser;
  return base::fail(base::Code::invalid_argument, fmt::format("no shape \"{}\"; there are: symmetric, sender_finer, sender_coarser", name));
}

Result<Case> grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape) {
  const std::int64_t finer = shape == Shape::sender_finer ? 4 : 1;
  const std::int64_t coarser = shape == Shape::sender_coarser ? 2 : 1;
  if (block_bytes < 1 || block_count < 1 || block_bytes % finer != 0 || block_count % coarser != 0) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} blocks of {} bytes do not divide into the sender's ({} times as many, {} times as large)",
                                  block_count, block_bytes, finer, coarser));
  }
  Case result;
  result.name = fmt::format("{} x {} B", block_count, block_bytes);
  result.send = LACUNA_TRY(blocks_with_gaps(block_bytes / finer * coarser, block_count * finer / coarser));
  result.receive = LACUNA_TRY(blocks_with_gaps(block_bytes, block_count));
  result.send_span = span_of(result.send);
  result.receive_span = span_of(result.receive);
  result.block_bytes = block_bytes;
  result.block_count = block_count;
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

}  // namespace lacuna::guide
