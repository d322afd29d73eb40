// The wire form. Version 1, after two bytes "L1": lower bound, upper bound, flags (1: there is an item, 2: the bounds
// are markers, 4: the form was not spelled out, and is not to be), then the item's offset and its nodes in preorder.
// Numbers are LEB128 varints, signed ones zigzag coded; lists are differences.
//
//   run       0, length
//   loop      1, count, stride, child
//   list      2, entries, offset differences (the first offset is 0 and left out), child
//   blocks    3, entries, for each: offset difference (not the first), length
//   sequence  4, entries, for each: offset difference (not the first), child
//
// A decoder builds the nodes that it reads, all of whose sizes and bounds are computed here with checked arithmetic;
// nothing that the peer says about them is believed. What is short enough is then spelled out and brought into
// canonical form, once and at the end, so that the work is bounded by the length of the form. The rest stays as it is,
// and so does what has flag 4, if it is long enough for it and has copies of a nested block. A form that the
// constructors made and encode() wrote keeps its digest, and any other is right, though perhaps not canonical.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

constexpr std::byte kMagic[] = {std::byte{'L'}, std::byte{'1'}};

class Writer {
 public:
  void byte(std::byte value) { bytes.push_back(value); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::byte>(value | 0x80));
    byte(static_cast<std::byte>(value));
  }
  void integer(std::int64_t value) { number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63)); }
  void node(const Node& node) {
    byte(static_cast<std::byte>(node.kind));
    if (node.kind == NodeKind::run) return integer(node.size);
    integer(node.entries());
    if (node.kind == NodeKind::loop) integer(node.stride);
    for (std::size_t i = 0; i < node.offsets.size(); ++i) {
      if (i > 0) integer(node.offsets[i] - node.offsets[i - 1]);
      if (node.kind == NodeKind::blocks) integer(node.starts[i + 1] - node.starts[i]);
      if (node.kind == NodeKind::sequence) this->node(*node.children[i]);
    }
    if (node.kind != NodeKind::sequence && !node.children.empty()) this->node(*node.children[0]);
  }

  std::vector<std::byte> bytes;
};

std::unexpected<base::Error> malformed(std::string what) { return base::fail(base::Code::malformed, "wire form: " + std::move(what)); }

class Reader {
 public:
  Reader(std::span<const std::byte> wire, const WireLimits& limits) : wire_(wire), limits_(limits), entries_left_(limits.max_entries) {}

  [[nodiscard]] std::size_t left() const { return wire_.size() - at_; }

  Result<std::byte> byte() {
    if (left() == 0) return malformed("it ends in the middle");
    return wire_[at_++];
  }
  Result<std::int64_t> integer() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = std::to_integer<std::uint64_t>(LACUNA_TRY(byte()));
      if (shift == 63 && next > 1) break;
      value |= (next & 0x7f) << shift;
      if (next < 0x80) return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    return malformed("a number of more than 64 bits");
  }
  // An offset or a difference of offsets: at most 2 kMaxBytes from 0, so that sums with one that was checked cannot
  // overflow.
  Result<std::int64_t> distance() {
    const std::int64_t value = LACUNA_TRY(integer());
    if (value < -2 * kMaxBytes || value > 2 * kMaxBytes)
      return base::fail(base::Code::overflow, fmt::format("wire form: an offset of {} bytes", value));
    return value;
  }
  Result<std::int64_t> positive(const char* what) {
    const std::int64_t value = LACUNA_TRY(integer());
    if (value <= 0) return malformed(fmt::format("{} is {}; it must be positive", what, value));
    if (value > kMaxBytes) return base::fail(base::Code::overflow, fmt::format("wire form: {} is {}", what, value));
    return value;
  }
  // No form repeats something once.
  Result<std::int64_t> several(const char* what) {
    const std::int64_t value = LACUNA_TRY(positive(what));
    if (value == 1) return malformed(fmt::format("{} is 1; it must be at least 2", what));
    return value;
  }
  // Every entry takes at least a byte, so a count beyond what is left is a lie, told before anything is allocated.
  Result<std::int64_t> entries() {
    const std::int64_t count = LACUNA_TRY(several("a number of entries"));
    if (static_cast<std::uint64_t>(count) > left()) return malformed(fmt::format("{} entries in {} bytes", count, left()));
    if (count > entries_left_)
      return base::fail(base::Code::limit, fmt::format("wire form: more than {} list entries", limits_.max_entries));
    entries_left_ -= count;
    return count;
  }

  Result<Item> node(int depth) {
    if (depth > limits_.max_depth) return base::fail(base::Code::limit, fmt::format("wire form: nested deeper than {}", limits_.max_depth));
    const auto kind = static_cast<NodeKind>(LACUNA_TRY(byte()));
    switch (kind) {
      case NodeKind::run: return Item{0, LACUNA_TRY(positive("a length")), nullptr};
      case NodeKind::loop: return loop(depth);
      case NodeKind::list: return list(depth);
      case NodeKind::blocks: return blocks();
      case NodeKind::sequence: return sequence(depth);
    }
    return malformed(fmt::format("a node of kind {}", static_cast<int>(kind)));
  }

  // That bytes, and the bytes between them, stay within kMaxBytes.
  static Result<void> check(std::int64_t size, std::int64_t low, std::int64_t high) {
    if (size <= kMaxBytes && low >= -kMaxBytes && high <= kMaxBytes) return {};
    return base::fail(base::Code::overflow, fmt::format("wire form: {} bytes between {} and {}, beyond 2^60 bytes", size, low, high));
  }

 private:
  Result<Item> loop(int depth) {
    const std::int64_t count = LACUNA_TRY(several("a count"));
    const std::int64_t stride = LACUNA_TRY(distance());
    const Item child = LACUNA_TRY(node(depth + 1));
    std::int64_t size = 0;
    std::int64_t last = 0;
    if (!base::mul(count, child.length, size) || !base::mul(count - 1, stride, last) || last < -2 * kMaxBytes || last > 2 * kMaxBytes) {
      return base::fail(base::Code::overflow, fmt::format("wire form: {} times {} bytes, {} bytes apart", count, child.length, stride));
    }
    LACUNA_TRY(check(size, child.low() + std::min<std::int64_t>(0, last), child.high() + std::max<std::int64_t>(0, last)));
    return Item{0, size, make_loop(child, count, stride)};
  }
  Result<Item> list(int depth) {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(LACUNA_TRY(entries())));
    for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] = LACUNA_TRY(step(offsets[i - 1]));
    const Item child = LACUNA_TRY(node(depth + 1));
    std::int64_t size = 0;
    if (!base::mul(child.length, std::ssize(offsets), size))
      return base::fail(base::Code::overflow, "wire form: a list of more than 2^63 bytes");
    const auto [lowest, highest] = extremes(offsets);
    LACUNA_TRY(check(size, lowest + child.low(), highest + child.high()));
    return Item{0, size, make_list(std::move(offsets), child)};
  }
  Result<Item> blocks() {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(LACUNA_TRY(entries())));
    std::vector<std::int64_t> starts(offsets.size() + 1);
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (i > 0) offsets[i] = LACUNA_TRY(step(offsets[i - 1]));
      const std::int64_t length = LACUNA_TRY(positive("a length"));
      starts[i + 1] = starts[i] + length;
      LACUNA_TRY(check(starts[i + 1], offsets[i], offsets[i] + length));
    }
    return Item{0, starts.back(), make_blocks(std::move(offsets), std::move(starts))};
  }
  Result<Item> sequence(int depth) {
    std::vector<Item> items(static_cast<std::size_t>(LACUNA_TRY(entries())));
    std::int64_t at = 0;
    std::int64_t size = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) at = LACUNA_TRY(step(at));
      items[i] = LACUNA_TRY(node(depth + 1));
      items[i].at = at;
      size += items[i].length;
      LACUNA_TRY(check(size, items[i].low(), items[i].high()));
    }
    return Item{0, size, make_sequence(items)};
  }
  Result<std::int64_t> step(std::int64_t from) {
    const std::int64_t to = from + LACUNA_TRY(distance());
    if (to < -kMaxBytes || to > kMaxBytes) return base::fail(base::Code::overflow, "wire form: an offset is beyond 2^60 bytes");
    return to;
  }

  std::span<const std::byte> wire_;
  const WireLimits& limits_;
  std::int64_t entries_left_;
  std::size_t at_ = 0;
};

bool has_copies_of_nests(const Node& node) {
  if ((node.kind == NodeKind::loop || node.kind == NodeKind::list) && node.children[0]->kind != NodeKind::run) return true;
  return std::ranges::any_of(node.children, [](const NodePtr& child) { return has_copies_of_nests(*child); });
}

// What flag 4 says, as far as the form itself bears it out. A false one costs no more than the canonical form.
bool may_be_kept(const Item& item) { return item.runs() > kNestedListLimit && has_copies_of_nests(*item.node); }

}  // namespace

std::vector<std::byte> encode(const Layout& layout) {
  const auto& state = Access::state(layout);
  Writer writer;
  for (const std::byte byte : kMagic) writer.byte(byte);
  writer.integer(state.lower);
  writer.integer(state.upper);
  writer.number((state.root ? 1u : 0u) | (state.marked ? 2u : 0u) | (state.kept ? 4u : 0u));
  if (state.root) {
    writer.integer(state.at);
    writer.node(*state.root);
  }
  return std::move(writer.bytes);
}

Result<Layout> decode(std::span<const std::byte> wire, const WireLimits& limits) {
  if (std::cmp_greater(wire.size(), limits.max_bytes)) {
    return base::fail(base::Code::limit, fmt::format("wire form of {} bytes; at most {} are accepted", wire.size(), limits.max_bytes));
  }
  Reader reader(wire, limits);
  for (const std::byte byte : kMagic) {
    if (LACUNA_TRY(reader.byte()) != byte) return malformed("it does not start with \"L1\"");
  }
  const std::int64_t lower = LACUNA_TRY(reader.distance());
  const std::int64_t upper = LACUNA_TRY(reader.distance());
  const auto flags = std::to_integer<unsigned>(LACUNA_TRY(reader.byte()));
  if (flags > 7 || (flags & 5) == 4) return malformed(fmt::format("flags {}", flags));
  Item item;
  bool kept = false;
  if ((flags & 1) != 0) {
    const std::int64_t at = LACUNA_TRY(reader.distance());
    item = LACUNA_TRY(reader.node(1));
    item.at += at;
    LACUNA_TRY(Reader::check(item.length, item.low(), item.high()));
    kept = (flags & 4) != 0 && may_be_kept(item);
    if (item.runs() <= kFlattenLimit && !kept) item = spelled_out(item);
  }
  if (reader.left() != 0) return malformed(fmt::format("{} bytes behind its end", reader.left()));
  return Access::make((flags & 1) != 0 ? &item : nullptr, lower, upper, (flags & 2) != 0, kept);
}

}  // namespace lacuna::layout
