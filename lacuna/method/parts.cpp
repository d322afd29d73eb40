#include "lacuna/method/parts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lacuna::method {
namespace {

// The loop that begins at the cursor, if a strided entry can hold it; its strip has the blocks that are left of it.
std::optional<layout::Strip> loop_at(layout::Cursor& cursor, const KeyRoom& room) {
  if (room.strided_entries < 1) return std::nullopt;
  const layout::Strip strip = cursor.next(layout::kMaxBytes);
  const bool fits = strip.offsets == nullptr && strip.count > 1 && strip.stride >= strip.length && strip.stride <= room.stride &&
                    std::cmp_less_equal(strip.count, std::numeric_limits<std::uint32_t>::max());
  return fits ? std::optional(strip) : std::nullopt;
}

class KeyedSide {
 public:
  KeyedSide(const layout::Layout& layout, const KeyRoom& room) : cursor_(layout), room_(room) {}

  // Bytes from `from` on that a list can hold.
  std::int64_t list_reach(std::int64_t from, std::int64_t most) {
    cursor_.seek(from);
    std::int64_t reach = 0;
    for (std::int64_t left = room_.entries; left > 0 && reach < most && !cursor_.done();) {
      const layout::Strip strip = cursor_.next(most - reach);
      const std::int64_t taken = std::min(left, strip.count);
      reach += strip.starts == nullptr ? taken * strip.length : strip.starts[taken] - strip.starts[0];
      left -= taken;
    }
    return reach;
  }
  std::int64_t reach(std::int64_t from, std::int64_t most) {
    cursor_.seek(from);
    const auto loop = loop_at(cursor_, room_);
    block_ = loop ? loop->length : 0;
    const std::int64_t strided = loop ? std::min(loop->bytes(), most / loop->length * loop->length) : 0;
    return std::max(strided, list_reach(from, most));
  }
  // Whether a key can hold just so much; after reach() at the same place.
  bool holds(std::int64_t from, std::int64_t bytes) {
    if (block_ > 0 && bytes % block_ == 0 && bytes > block_) {
      cursor_.seek(from);
      if (const auto loop = loop_at(cursor_, room_); loop && loop->bytes() >= bytes) return true;
    }
    return list_reach(from, bytes) == bytes;
  }

 private:
  layout::Cursor cursor_;
  const KeyRoom& room_;
  std::int64_t block_ = 0;
};

}  // namespace

Shape shape_of(const layout::Layout& layout, StreamRange part, const KeyRoom& room) {
  layout::Cursor cursor(layout);
  cursor.seek(part.from);
  Shape shape;
  if (const auto loop = loop_at(cursor, room);
      loop && part.bytes % loop->length == 0 && part.bytes > loop->length && loop->bytes() >= part.bytes) {
    shape.runs = {loop->run(0)};
    shape.repeat = part.bytes / loop->length;
    shape.stride = loop->stride;
    return shape;
  }
  cursor.seek(part.from);
  for (std::int64_t at = 0; at < part.bytes;) {
    const std::int64_t left = std::min<std::int64_t>(part.bytes - at, std::numeric_limits<std::int32_t>::max());
    const layout::Strip strip = cursor.next(left);
    const std::size_t before = shape.runs.size();
    shape.runs.resize(before + static_cast<std::size_t>(strip.count));
    for (std::int64_t i = 0; i < strip.count; ++i) shape.runs[before + static_cast<std::size_t>(i)] = strip.run(i);
    at += strip.bytes();
  }
  return shape;
}

std::vector<StreamRange> cut(const layout::Layout& one, const layout::Layout& other, const KeyRoom& room, std::int64_t most_bytes) {
  std::vector<StreamRange> parts;
  KeyedSide first(one, room);
  KeyedSide second(other, room);
  for (std::int64_t at = 0; at < one.size(); at += parts.back().bytes) {
    std::int64_t bytes = std::min(first.reach(at, most_bytes), second.reach(at, most_bytes));
    // A loop that is cut within a block needs a list, for which it may be too long.
    if (!first.holds(at, bytes) || !second.holds(at, bytes)) bytes = std::min(first.list_reach(at, bytes), second.list_reach(at, bytes));
    parts.push_back({at, bytes});
  }
  return parts;
}

}  // namespace lacuna::method
