#include "lacuna/mpi/collectives/collectives.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "lacuna/copy/copy.hpp"
#include "lacuna/mpi/types/device_memory.hpp"

namespace lacuna::mpi {
namespace {

// Blocks of one side, one after another.
struct BlockList {
  Process& process;
  std::vector<Block>& all;
  bool devices = has_devices();
};

bool add(BlockList& list, std::byte* base, Count count, Datatype type, Datatype last, bool there, Why& why) {
  auto& [process, parts, devices] = list;
  const std::int64_t packed_at = parts.empty() ? 0 : parts.back().packed_at + parts.back().bytes;
  Block part{.base = base, .count = count, .type = {}, .layout = {}, .bytes = 0, .packed_at = packed_at, .moves = there};
  bool early = false;
  why = Why::in_error;
  if (count < 0) return false;
  if (count > 0) {
    part.type = !parts.empty() && type == last && parts.back().count > 0 ? parts.back().type : process.types.find(type, count, early);
    why = early ? Why::first_use : Why::undecodable;
    if (part.type == nullptr) return false;
    why = Why::in_error;
    part.bytes = part.type->bytes(count);
    if (part.bytes < 0) return false;
    if (part.bytes > 0 && there && devices && on_device(*part.type.get(), base, count)) {
      why = Why::device_memory;
      return false;
    }
    if (part.bytes > 0 && there && reinterpret_cast<std::uintptr_t>(base) < 65536 && !part.type->absolute()) return false;
    base::Result<Elements> layout = part.type->of(count);
    if (!layout) return false;
    part.layout = std::move(*layout);
  }
  parts.push_back(std::move(part));
  return true;
}

// Whether packing pays for a side: for each block the most of what moves, by what both ways are expected to take.
// `remembers`: which have none to pack, for the next call; not where a report says why each was left.
bool pays(const Ways& ways, MpiUse use, const std::vector<Block>& parts, bool remembers) {
  double packed = 0, left = 0, more = 0;
  bool gains = false;
  const Block* last = nullptr;  // mostly all are alike
  for (const Block& part : parts) {
    if (!part.moves || part.bytes == 0) continue;
    if (last == nullptr || last->type.get() != part.type.get() || last->count != part.count) {
      const bool contiguous = part.type->contiguous(part.count);
      if (contiguous && remembers) part.type->leave(use, part.count, Type::Among::host_and_packed);
      gains = !contiguous && ways.packs(use, *part.type.get(), part.count);
      const double by_host = ways.expected_ns(use, MpiWay::host, *part.type.get(), part.count).value_or(0);
      const double by_packing = ways.expected_ns(use, MpiWay::packed, *part.type.get(), part.count).value_or(by_host);
      more = gains ? std::max(by_host - by_packing, 1.0) : std::max(by_packing - by_host, 0.0);
    }
    last = &part;
    (gains ? packed : left) += more;
  }
  return packed > left;
}

}  // namespace

void pack_onto(const Board& board, std::int64_t at, const Block& block) {
  board.own(at, block.bytes);
  copy::pack(block.layout, block.base, 0, block.bytes, board.room() + at, copy::Caching::kept);
}

bool unpack_from(const Board& board, int rank, const Note& note, const Block* block) {
  const std::int64_t bytes = base::read_once(note.bytes);
  if (bytes == 0) return true;
  const auto from = static_cast<std::size_t>(rank);
  const bool aside = (base::read_once(note.says) & Note::kAside) != 0;
  const std::byte* const there = aside ? board.aside(from, note, bytes) : board.block(from, base::read_once(note.at), bytes);
  if (there == nullptr || block == nullptr || block->bytes < bytes) return false;
  copy::unpack(block->layout, block->base, 0, bytes, there, copy::Caching::kept);
  return true;
}

bool copy_block(const Block& from, const Block& to) {
  if (from.bytes != to.bytes) return false;
  try {
    return copy::transpack(from.layout, from.base, to.layout, to.base).has_value();
  } catch (const std::bad_alloc&) {  // packing and unpacking want no memory
    std::array<std::byte, 4096> some;
    const auto step = static_cast<std::int64_t>(some.size());
    for (std::int64_t at = 0; at < from.bytes; at += step) {
      const std::int64_t bytes = std::min(step, from.bytes - at);
      copy::pack(from.layout, from.base, at, bytes, some.data());
      copy::unpack(to.layout, to.base, at, bytes, some.data());
    }
  }
  return true;
}

template <class Number, class At>
bool list(Process& process, const Blocks<Number, At>& blocks, int number, const std::vector<bool>& there, std::vector<Block>& parts,
          std::vector<std::int64_t>* places, Why& why) {
  auto* const base = const_cast<std::byte*>(static_cast<const std::byte*>(blocks.base));
  std::int64_t elements = 0;
  Aint extent = 1, lower = 0;
  why = Why::in_error;
  if (blocks.types == nullptr && number > 0 && host().Type_get_extent(blocks.type, &lower, &extent) != kSuccess) return false;
  BlockList listed{.process = process, .all = parts};
  parts.reserve(static_cast<std::size_t>(number));
  if (places != nullptr) places->reserve(static_cast<std::size_t>(number));
  for (int i = 0; i < number; ++i) {
    const Count count = blocks.count_of(i);
    const Aint place = blocks.places == nullptr ? i * static_cast<Aint>(count) : static_cast<Aint>(blocks.places[i]);
    const bool somebody = there.empty() || there[static_cast<std::size_t>(i)];
    const Datatype last = i > 0 ? blocks.type_of(i - 1) : Datatype{};
    if (!add(listed, base + place * extent, count, blocks.type_of(i), last, somebody, why)) {
      for (int k = i + 1; k < number; ++k) {  // if it is the first use of a type, it is that of all of them
        if (blocks.count_of(k) > 0 && blocks.type_of(k) != blocks.type_of(k - 1)) process.types.find(blocks.type_of(k), blocks.count_of(k));
      }
      return false;
    }
    if (places != nullptr) places->push_back(blocks.types != nullptr ? parts.back().packed_at : elements);
    elements += count;
  }
  return true;
}

template <class Number, class At>
bool PackedSide::take(Process& process, MpiUse use, const Blocks<Number, At>& blocks, int number, const std::vector<bool>& there,
                      Why& why) {
  std::vector<std::int64_t> places;
  if (!list(process, blocks, number, there, parts_, &places, why)) return false;
  why = Why::host_is_fast;
  if (!pays(process.ways, use, parts_, !process.report.on())) return false;
  why = Why::too_long;
  if (places.back() > std::numeric_limits<At>::max()) return false;
  for (const Block& part : parts_) {
    const bool moves = part.bytes > 0;
    const Datatype type = moves ? process.types.without_gaps(part.type->size()) : host().no_type;
    if (moves && type == host().no_type) return false;
    if (blocks.types != nullptr) types_.push_back(moves ? type : blocks.types[types_.size()]);
    if (moves) type_ = type;
  }
  if constexpr (std::is_same_v<At, int>) {
    ints_.assign(places.begin(), places.end());
  } else {
    longs_.assign(places.begin(), places.end());
  }
  for (Block& part : parts_) part.type.keep();
  why = Why::no_memory;
  bounce_ = process.bounces.take(parts_.back().packed_at + parts_.back().bytes);
  return packed();
}

template bool list(Process&, const Blocks<int, int>&, int, const std::vector<bool>&, std::vector<Block>&, std::vector<std::int64_t>*, Why&);
template bool list(Process&, const Blocks<int, Aint>&, int, const std::vector<bool>&, std::vector<Block>&, std::vector<std::int64_t>*,
                   Why&);
template bool PackedSide::take(Process&, MpiUse, const Blocks<int, int>&, int, const std::vector<bool>&, Why&);
template bool PackedSide::take(Process&, MpiUse, const Blocks<int, Aint>&, int, const std::vector<bool>&, Why&);
#if defined(LACUNA_MPI_LARGE_COLLECTIVES)
template bool list(Process&, const Blocks<Count, Aint>&, int, const std::vector<bool>&, std::vector<Block>&, std::vector<std::int64_t>*,
                   Why&);
template bool PackedSide::take(Process&, MpiUse, const Blocks<Count, Aint>&, int, const std::vector<bool>&, Why&);
#endif

void PackedSide::pack(Process& process, int block) const {
  const Block& part = parts_[static_cast<std::size_t>(block)];
  if (part.bytes == 0 || !part.moves) return;
  const std::int64_t began = process.report.on() ? base::now_ns() : 0;
  copy::pack(part.layout, part.base, 0, part.bytes, bounce_.data() + part.packed_at, copy::Caching::kept);
  if (began != 0)
    process.report.count(MessageReport::Way::collected_out, part.type.get(), part.count, -1, part.bytes, base::now_ns() - began);
}

void PackedSide::unpack(Process& process, int block) const {
  const Block& part = parts_[static_cast<std::size_t>(block)];
  if (part.bytes == 0 || !part.moves) return;
  const std::int64_t began = process.report.on() ? base::now_ns() : 0;
  copy::unpack(part.layout, part.base, 0, part.bytes, bounce_.data() + part.packed_at, copy::Caching::kept);
  if (began != 0)
    process.report.count(MessageReport::Way::collected_in, part.type.get(), part.count, -1, part.bytes, base::now_ns() - began);
}

void Collection::load(Process& process) const {
  for (int i = 0; out.packed() && i < out.size(); ++i) out.pack(process, i);
  for (int i = 0; in.packed() && i < in.size(); ++i) {
    if (shape.also_out == Shape::all || shape.also_out == i) in.pack(process, i);
  }
}

void Collection::store(Process& process) const {
  for (int i = 0; in.packed() && i < in.size(); ++i) {
    if (i != shape.not_in) in.unpack(process, i);
  }
}

}  // namespace lacuna::mpi
