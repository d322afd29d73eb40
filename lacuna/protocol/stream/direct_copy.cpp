#include "lacuna/protocol/stream/direct_copy.hpp"

#include <algorithm>

#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::protocol {
namespace {

using guide::usual::kLeastPiece;
using guide::usual::kMostPiece;
using guide::usual::kPieces;
constexpr std::uint64_t kStopped = std::uint64_t{1} << 63;  // in the number of pieces that were begun

std::int64_t piece_of(std::int64_t bytes) { return std::clamp(bytes / kPieces, kLeastPiece, kMostPiece); }
std::uint64_t pieces_of(std::int64_t bytes) { return static_cast<std::uint64_t>((bytes + piece_of(bytes) - 1) / piece_of(bytes)); }

}  // namespace

bool DirectCopy::over(const DirectMemory& shared, std::int64_t bytes) {
  return shared.ended.load(std::memory_order_acquire) >= pieces_of(bytes);
}

void DirectCopy::stop(DirectMemory& shared) { shared.begun.fetch_or(kStopped, std::memory_order_acq_rel); }

bool DirectCopy::at_work(const DirectMemory& shared, std::int64_t bytes) {
  const std::uint64_t begun = shared.begun.load(std::memory_order_acquire) & ~kStopped;
  return shared.ended.load(std::memory_order_acquire) < std::min(begun, pieces_of(bytes));
}

void DirectCopy::list(layout::Cursor& cursor, std::uint64_t addr, std::int64_t from, std::int64_t bytes, std::vector<nic::Sge>& to) {
  to.clear();
  if (cursor.position() != from) cursor.seek(from);
  while (bytes > 0) {
    const layout::Run run = cursor.next_run(bytes);
    to.push_back({addr + static_cast<std::uint64_t>(run.offset), static_cast<std::uint32_t>(run.length), 0});
    bytes -= run.length;
  }
}

bool DirectCopy::step() {
  // Not counted on beyond the end, so that the counter never comes round again.
  if (shared_->begun.load(std::memory_order_relaxed) >= pieces_of(bytes_)) return false;
  const std::uint64_t piece = shared_->begun.fetch_add(1, std::memory_order_relaxed);
  // at_work() counts what was begun
  if ((piece & kStopped) != 0) shared_->begun.fetch_sub(1, std::memory_order_relaxed);
  if (piece >= pieces_of(bytes_)) return false;
  const std::int64_t from = static_cast<std::int64_t>(piece) * piece_of(bytes_);
  const std::int64_t bytes = std::min(piece_of(bytes_), bytes_ - from);
  list(own_, reinterpret_cast<std::uint64_t>(base_), from, bytes, here_);
  list(theirs_, addr_, from, bytes, there_);
  if (!qp_->copy(sends_, here_, there_)) shared_->failed.store(1, std::memory_order_relaxed);
  shared_->ended.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace lacuna::protocol
