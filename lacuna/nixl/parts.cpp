#include "lacuna/nixl/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "lacuna/nixl/nests.hpp"

namespace lacuna::nixl {
namespace {

using Pieces = std::span<const nixlMetaDesc>;

// The pieces of one registration, as numbers relative to the first one.
class Column {
 public:
  [[nodiscard]] std::uint64_t first() const { return first_; }
  void reserve(std::size_t pieces) { offsets_.reserve(pieces); }
  void add(const nixlMetaDesc& piece) {
    const auto length = static_cast<std::int64_t>(piece.len);
    if (offsets_.empty()) {
      first_ = piece.addr;
      length_ = length;
    }
    if (lengths_.empty() && length != length_) lengths_.assign(offsets_.size(), length_);
    if (length != length_ || !lengths_.empty()) lengths_.push_back(length);
    offsets_.push_back(static_cast<std::int64_t>(piece.addr - first_));
  }
  [[nodiscard]] Result<Layout> layout() const {
    if (lengths_.empty()) return layout_of_pieces(length_, offsets_);
    return Layout::hindexed(lengths_, offsets_, LACUNA_TRY(Layout::bytes(1)));
  }

 private:
  std::uint64_t first_ = 0;
  std::vector<std::int64_t> offsets_;
  std::int64_t length_ = 0;            // of all,
  std::vector<std::int64_t> lengths_;  // unless these say otherwise
};

struct Columns {
  const RemoteMemory* memory = nullptr;
  const LocalMemory* own = nullptr;  // null: there are several
  Column ours, theirs;

  void reserve(std::size_t pieces) {
    ours.reserve(pieces);
    theirs.reserve(pieces);
  }
};

Result<void> check_within(const nixlMetaDesc& piece, std::size_t index, std::string_view side, std::uint64_t base, std::int64_t bytes) {
  const auto most = static_cast<std::uint64_t>(bytes);
  if (piece.addr >= base && piece.len <= most && piece.addr - base <= most - piece.len) return {};
  return base::fail(base::Code::invalid_argument,
                    fmt::format("{} descriptor {}: {} bytes at {:#x} are not within the {} bytes at {:#x} that are registered", side, index,
                                piece.len, piece.addr, bytes, base));
}

// Remembers the last one: neighbours in a list are mostly of one registration.
template <class Memory>
class Known {
 public:
  Result<const Memory*> of(const nixlMetaDesc& piece, std::size_t index, std::string_view side) {
    if (piece.metadataP == last_ && memory_ != nullptr) return memory_;
    memory_ = dynamic_cast<const Memory*>(piece.metadataP);
    last_ = piece.metadataP;
    if (memory_ == nullptr)
      return base::fail(base::Code::invalid_argument, fmt::format("{} descriptor {} is not of memory registered with LACUNA", side, index));
    return memory_;
  }

 private:
  const nixlBackendMD* last_ = nullptr;
  const Memory* memory_ = nullptr;
};

Result<std::vector<Columns>> columns_of(Pieces local, Pieces remote) {
  std::vector<Columns> all;
  std::unordered_map<const RemoteMemory*, std::size_t> places;
  Known<LocalMemory> ours;
  Known<RemoteMemory> theirs;
  const RemoteMemory* last = nullptr;
  std::size_t at = 0;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const LocalMemory& here = *LACUNA_TRY(ours.of(local[i], i, "local"));
    const RemoteMemory& there = *LACUNA_TRY(theirs.of(remote[i], i, "remote"));
    LACUNA_TRY(check_within(local[i], i, "local", reinterpret_cast<std::uint64_t>(here.base), here.bytes));
    LACUNA_TRY(check_within(remote[i], i, "remote", there.base, there.bytes));
    if (local[i].len != remote[i].len)
      return base::fail(base::Code::invalid_argument,
                        fmt::format("descriptor {}: {} bytes here, {} bytes there", i, local[i].len, remote[i].len));
    if (local[i].len == 0) continue;
    if (&there != last) {
      last = &there;
      at = places.try_emplace(last, all.size()).first->second;
      if (at == all.size()) {
        all.push_back({.memory = last, .own = &here, .ours = {}, .theirs = {}});
        if (at == 0) all[at].reserve(local.size());  // mostly there is one registration
      }
    }
    if (all[at].own != &here) all[at].own = nullptr;
    all[at].ours.add(local[i]);
    all[at].theirs.add(remote[i]);
  }
  return all;
}

std::optional<Part::Own> own_of(const LocalMemory* memory) {
  if (memory == nullptr) return std::nullopt;
  return Part::Own{.token = memory->token, .base = memory->base, .bytes = memory->bytes};
}

}  // namespace

Result<std::vector<Part>> parts_of(const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote) {
  if (local.descs.size() != remote.descs.size())
    return base::fail(base::Code::invalid_argument, fmt::format("{} descriptors here, {} there", local.descs.size(), remote.descs.size()));
  std::vector<Part> parts;
  for (const Columns& columns : LACUNA_TRY(columns_of(local.descs, remote.descs)))
    parts.push_back({.local = reinterpret_cast<std::byte*>(columns.ours.first()),
                     .ours = LACUNA_TRY(columns.ours.layout()),
                     .memory = columns.memory->token,
                     .base = columns.memory->base,
                     .offset = static_cast<std::int64_t>(columns.theirs.first() - columns.memory->base),
                     .theirs = LACUNA_TRY(columns.theirs.layout()),
                     .own = own_of(columns.own)});
  return parts;
}

namespace {

// What a part writes: a layout somewhere in memory.
struct Written {
  std::uint64_t first;  // where the layout begins
  const Layout* layout;
  [[nodiscard]] std::uint64_t low() const { return first + static_cast<std::uint64_t>(layout->true_lower_bound()); }
  [[nodiscard]] std::uint64_t high() const { return low() + static_cast<std::uint64_t>(layout->true_extent()); }
};

Result<bool> overlap(std::span<const Written> several) {
  if (several.size() == 1) return several[0].layout->overlaps();
  std::vector<std::int64_t> places;
  std::vector<Layout> layouts;
  for (const Written& one : several) {
    places.push_back(static_cast<std::int64_t>(one.first - several[0].first));
    layouts.push_back(*one.layout);
  }
  return LACUNA_TRY(Layout::structure(std::vector<std::int64_t>(places.size(), 1), places, layouts)).overlaps();
}

}  // namespace

// Registrations may have memory in common, and one of this end may be the destination of several of the peer's: parts
// that lie among one another are looked at together.
Result<void> check_destinations(const std::vector<Part>& parts, bool puts) {
  std::vector<Written> all;
  all.reserve(parts.size());
  for (const Part& part : parts)
    all.push_back(puts ? Written{part.base + static_cast<std::uint64_t>(part.offset), &part.theirs}
                       : Written{reinterpret_cast<std::uint64_t>(part.local), &part.ours});
  std::ranges::sort(all, {}, &Written::low);
  for (std::size_t from = 0, to = 0; from < all.size(); from = to) {
    std::uint64_t high = all[from].high();
    for (to = from + 1; to < all.size() && all[to].low() < high; ++to) high = std::max(high, all[to].high());
    if (LACUNA_TRY(overlap(std::span(all).subspan(from, to - from))))
      return base::fail(base::Code::invalid_argument, "the descriptors of the destination name some bytes twice");
  }
  return {};
}

Result<std::pair<Part, Part>> halves_of(const Part& part) {
  const std::int64_t bytes = part.ours.size(), half = bytes / 2;
  if (half == 0) return base::fail(base::Code::limit, "a part of one byte cannot be cut");
  const auto cut = [&](std::int64_t from, std::int64_t length) -> Result<Part> {
    Part made = part;
    made.ours = LACUNA_TRY(part.ours.slice(from, length));
    made.theirs = LACUNA_TRY(part.theirs.slice(from, length));
    return made;
  };
  Part first = LACUNA_TRY(cut(0, half));
  return std::pair{std::move(first), LACUNA_TRY(cut(half, bytes - half))};
}

}  // namespace lacuna::nixl
