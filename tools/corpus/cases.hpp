// Cases: pairs of layouts that are measured. Grids of blocks, DDTBench's layouts (ddtbench.hpp), transfers of AI
// systems (ai.hpp), pairs of any layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/layout/layout.hpp"

namespace lacuna::corpus {

using base::Result;
using layout::Layout;

/// What to measure on: two layouts of one size, each within [0, span) of its base.
struct Case {
  std::string name;
  Layout send;
  Layout receive;
  std::int64_t send_span = 0;
  std::int64_t receive_span = 0;
  std::int64_t block_bytes = 0;  ///< the receiver's; the average where they differ
  std::int64_t block_count = 0;

  // Cold: every transfer uses other memory. Copy k lies k slots behind the first; `shared_gaps`: in the gaps of the
  // others.
  std::int64_t copies = 1;
  std::int64_t send_slot = 0;
  std::int64_t receive_slot = 0;
  bool shared_gaps = false;

  [[nodiscard]] bool cold() const { return copies > 1; }
};

/// How the sender's blocks relate to the receiver's.
enum class Shape {
  symmetric,
  sender_finer,    ///< four times the blocks of a quarter of the size
  sender_coarser,  ///< half the blocks of twice the size
};
Result<Shape> shape_from_name(std::string_view name);

/// Equal blocks with a gap of twice the block between them, as in the paper's Table 4. Errors: invalid_argument if the
/// shape does not divide the blocks.
Result<Case> grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape);
/// The same blocks, cold: as far apart as a working set of twice the last-level cache allows (a page at least), so
/// that each costs a cache and a TLB miss. The copies lie in each other's gaps. Errors: as grid_case().
Result<Case> cold_grid_case(std::int64_t block_bytes, std::int64_t block_count, Shape shape);
Result<Case> cold_grid_case_beyond(std::int64_t cache, std::int64_t block_bytes, std::int64_t block_count,
                                   Shape shape);  ///< of so many bytes
/// Any case cold, with its own gaps: copies side by side, until their cache lines are twice the last-level cache, or
/// they take 256 MiB.
Case cold(Case what);
Case cold_beyond(std::int64_t cache, Case what);
/// Equal blocks, on either side with the same gap between them: the papers' other experiments. The blocks are the
/// receiver's; if that is one contiguous buffer (`to_contiguous`), the sender's. Errors: as grid_case().
Result<Case> blocks_case(std::int64_t block_bytes, std::int64_t block_count, std::int64_t gap_bytes, Shape shape, bool to_contiguous);
/// The cross of a 2D stencil of 4k + 1 points in an array with rows of 1000 points: k rows with one point, one with
/// 2k + 1, k with one. Errors: invalid_argument.
Result<Case> stencil_case(std::int64_t points, std::int64_t point_bytes);
/// A transfer of today's AI systems (ai.hpp), cut to `most_payload` bytes. Errors: invalid_argument.
Result<Case> ai_case(const std::string& name, std::int64_t most_payload);

/// A DDTBench layout by family and index of size. Errors: invalid_argument.
Result<Case> ddtbench_case(const std::string& family, int size);
/// Of a wire form, two hexadecimal digits a byte. Errors: malformed.
Result<Layout> layout_from_hex(std::string_view digits);
/// From the JSON text of a request's layout (docs/design/worker.md). `cache`: bytes of the last-level cache that a cold
/// case has to outgrow; none: this machine's. Errors: invalid_argument.
Result<Case> case_from_json(const std::string& layout, const std::string& shape, bool cold, std::optional<std::int64_t> cache = {});

/// The last-level cache, as far as measurements have to outgrow it: 32 MiB where it is smaller or unknown.
[[nodiscard]] std::int64_t cache_bytes();

}  // namespace lacuna::corpus
