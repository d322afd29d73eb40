// A distributed matrix transposed: the blocks of the rows of one rank that fall to another are sent row by row, which
// leaves runs as long as they are, and the receiver's layout puts each element where it belongs. So the only passes are
// those of the way that the layouts travel.
//
//            columns of rank s                        rows of rank r
//           ┌──────┬──────┐                          ┌──────┬──────┐
//   rank r  │      │ ───▶ │ ──── row after row ────▶ │ │    │      │  rank s
//           ├──────┼──────┤                          │ ▼    │      │
//           │      │      │                          ├──────┼──────┤
//           └──────┴──────┘                          └──────┴──────┘
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lacuna/collective/exchange.hpp"

namespace lacuna::collective {
namespace {

using base::Code;

Result<std::vector<std::int64_t>> blocks_of(std::span<const std::int64_t> given, std::int64_t n, int ranks, std::string_view what) {
  if (given.empty()) return even_blocks(n, ranks);
  if (std::cmp_not_equal(given.size(), ranks))
    return base::fail(Code::invalid_argument,
                      fmt::format("{} blocks of {}; one for each of {} ranks is needed", given.size(), what, ranks));
  std::int64_t left = n;
  for (const std::int64_t block : given) {
    if (block < 0 || block > left)
      return base::fail(Code::invalid_argument, fmt::format("blocks of {} with one of {}; they have to make {} in all", what, block, n));
    left -= block;
  }
  if (left != 0) return base::fail(Code::invalid_argument, fmt::format("blocks of {} that leave {} of {} to nobody", what, left, n));
  return std::vector<std::int64_t>(given.begin(), given.end());
}

// In bytes, or an error where that is too much.
Result<std::int64_t> bytes_of(std::int64_t elements, std::int64_t element_bytes) {
  std::int64_t bytes = 0;
  if (!base::mul(elements, element_bytes, bytes) || bytes > layout::kMaxBytes)
    return base::fail(Code::overflow, fmt::format("{} elements of {} bytes are beyond 2^60 bytes", elements, element_bytes));
  return bytes;
}

// A row-major block of memory has rows of so many elements.
Result<std::int64_t> leading(std::int64_t given, std::int64_t least, std::string_view what) {
  if (given == 0) return std::max<std::int64_t>(least, 1);
  if (given < least)
    return base::fail(Code::invalid_argument, fmt::format("a leading dimension of {} elements {}; a row there has {}", given, what, least));
  return given;
}

Result<Request> request_of(const Matrix& matrix, int rank, int ranks, const void* before, void* after) {
  if (matrix.rows < 0 || matrix.columns < 0 || matrix.element_bytes < 1)
    return base::fail(Code::invalid_argument,
                      fmt::format("a matrix of {} x {} elements of {} bytes", matrix.rows, matrix.columns, matrix.element_bytes));
  const auto rows = LACUNA_TRY(blocks_of(matrix.row_blocks, matrix.rows, ranks, "rows"));
  const auto columns = LACUNA_TRY(blocks_of(matrix.column_blocks, matrix.columns, ranks, "columns"));
  const std::int64_t element = matrix.element_bytes;
  const std::int64_t row_bytes = LACUNA_TRY(bytes_of(LACUNA_TRY(leading(matrix.leading_before, matrix.columns, "before")), element));
  const std::int64_t column_bytes = LACUNA_TRY(bytes_of(LACUNA_TRY(leading(matrix.leading_after, matrix.rows, "afterwards")), element));
  const std::int64_t own_rows = rows[static_cast<std::size_t>(rank)];
  const std::int64_t own_columns = columns[static_cast<std::size_t>(rank)];

  Request request{.kind = ExchangeKind::transpose};
  const auto* from = static_cast<const std::byte*>(before);
  auto* to = static_cast<std::byte*>(after);
  const Layout scattered = LACUNA_TRY(Layout::hvector(own_columns, 1, column_bytes, LACUNA_TRY(Layout::bytes(element))));
  for (int peer = 0; peer < ranks; ++peer) {
    const std::int64_t their_columns = LACUNA_TRY(bytes_of(columns[static_cast<std::size_t>(peer)], element));
    const std::int64_t their_rows = rows[static_cast<std::size_t>(peer)];
    const Layout block = LACUNA_TRY(Layout::hvector(own_rows, 1, row_bytes, LACUNA_TRY(Layout::bytes(their_columns))));
    request.sends.push_back({peer, {block.size() > 0 ? from : nullptr, block}});
    const Layout turned = LACUNA_TRY(Layout::hvector(their_rows, 1, element, scattered));
    request.receives.push_back({peer, {turned.size() > 0 ? to : nullptr, turned}});
    from = from != nullptr ? from + their_columns : nullptr;
    to = to != nullptr ? to + their_rows * element : nullptr;
  }
  std::vector<std::int64_t> alike{matrix.rows, matrix.columns, element};
  alike.insert(alike.end(), rows.begin(), rows.end());
  alike.insert(alike.end(), columns.begin(), columns.end());
  request.shape = digest_of(alike);
  return request;
}

}  // namespace

std::vector<std::int64_t> even_blocks(std::int64_t n, int ranks) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(ranks), n / ranks);
  for (std::int64_t i = 0; i < n % ranks; ++i) ++blocks[static_cast<std::size_t>(i)];
  return blocks;
}

std::unique_ptr<Exchange> transpose_init(Communicator& ranks, const Matrix& matrix, const void* before, void* after,
                                         const Options& options) {
  Result<Request> request = request_of(matrix, ranks.rank(), ranks.size(), before, after);
  if (!request) request = Request{.kind = ExchangeKind::transpose, .sends = {}, .receives = {}, .shape = 0, .refused = request.error()};
  return std::make_unique<Agreed>(ranks, std::move(*request), options);
}

}  // namespace lacuna::collective
