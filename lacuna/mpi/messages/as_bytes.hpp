// Blocks of datatypes that are not understood, as bytes: the host packs and unpacks them. For calls that go another way
// than the host's, whatever their datatypes are.
#pragma once

#include <utility>
#include <vector>

#include "lacuna/mpi/messages/exchange.hpp"

namespace lacuna::mpi::detail {

template <class Number, class At>
class AsBytes {
 public:
  /// Room for so many, which `parts` are then. `there`: whether each is somebody's; empty: all are. False: there is no
  /// memory. Throws std::bad_alloc.
  bool take(Job& job, const Blocks<Number, At>& of, int number, const std::vector<bool>& there, std::vector<Block>& parts) {
    const std::int64_t all = find(job, of, number, there);
    if (all > 0) bounce_ = job.bounces.take(all);
    if (all < 0 || (all > 0 && bounce_.data() == nullptr)) return false;
    for (Piece& piece : pieces_) {
      Block part{.base = bounce_.data() + piece.packed_at,
                 .count = static_cast<Count>(piece.bytes),
                 .type = {},
                 .layout = {},
                 .bytes = piece.bytes,
                 .packed_at = piece.packed_at,
                 .moves = piece.moves};
      if (piece.bytes > 0) {
        part.type = job.types.find(host().byte);
        if (part.type == nullptr) return false;
        base::Result<Elements> layout = part.type->of(part.count);
        if (!layout) return false;
        part.layout = std::move(*layout);
      }
      parts.push_back(std::move(part));
    }
    return true;
  }
  int load(Comm comm) const {
    for (const Piece& one : pieces_) {
      Number at = 0;
      const int result = one.bytes == 0 ? kSuccess
                                        : for_number<Number>(host().Pack, host().Pack_c)(one.at, one.count, one.type, packed(one),
                                                                                         static_cast<Number>(one.bytes), &at, comm);
      if (result != kSuccess) return result;
    }
    return kSuccess;
  }
  int store(Comm comm) const {
    for (const Piece& one : pieces_) {
      Number at = 0;
      const int result = one.bytes == 0 ? kSuccess
                                        : for_number<Number>(host().Unpack, host().Unpack_c)(packed(one), static_cast<Number>(one.bytes),
                                                                                             &at, one.at, one.count, one.type, comm);
      if (result != kSuccess) return result;
    }
    return kSuccess;
  }

 private:
  struct Piece {
    std::byte* at = nullptr;
    Number count = 0;
    Datatype type{};
    std::int64_t bytes = 0, packed_at = 0;
    bool moves = false;
    Loan loan;  // the program may free the type
  };
  // The bytes of all pieces; below 0: they are not to be found out.
  std::int64_t find(Job& job, const Blocks<Number, At>& of, int number, const std::vector<bool>& there) {
    // What comes in is the program's to write, though both sides have one type.
    auto* const base = const_cast<std::byte*>(static_cast<const std::byte*>(of.base));
    Aint lower = 0, extent = 1;
    std::int64_t all = 0;
    if (of.types == nullptr && number > 0 && host().Type_get_extent(of.type, &lower, &extent) != kSuccess) return -1;
    pieces_.reserve(static_cast<std::size_t>(number));
    for (int i = 0; i < number; ++i) {
      const Count count = of.count_of(i);
      Piece one{.packed_at = all, .moves = there.empty() || there[static_cast<std::size_t>(i)]};
      if (count > 0 && one.moves) {
        one.at = base + (of.places == nullptr ? i * static_cast<Aint>(count) : static_cast<Aint>(of.places[i])) * extent;
        one.count = static_cast<Number>(count);
        one.type = of.type_of(i);
        one.bytes = bytes_of(job, one.type, count);
        if (!std::in_range<Number>(one.bytes) || one.bytes < 0) return -1;
        one.loan = Loan(job.types, one.type);
      }
      all += one.bytes;
      pieces_.push_back(std::move(one));
    }
    return all;
  }
  [[nodiscard]] std::byte* packed(const Piece& one) const { return bounce_.data() + one.packed_at; }
  std::vector<Piece> pieces_;
  Bounce bounce_;
};

/// Both sides of a call. False: there is no memory.
template <class Number, class At>
bool list_as_bytes(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, AsBytes<Number, At>& out, AsBytes<Number, At>& in) try {
  const Pattern& pattern = now.pattern();
  const std::vector<bool> all;
  const Neighbors* const neighbors = pattern.neighbors();
  const bool one = pattern.one_for_all();
  now.out.clear();
  now.in.clear();
  const int outs = one ? std::min(pattern.outs(), 1) : pattern.outs();
  const bool has_out = call.out.base != in_place() && outs > 0;
  const bool has_in = call.in.base != in_place() && pattern.ins() > 0 && !(call.kind == Collective::bcast && pattern.is_root());
  const std::vector<bool>& to = neighbors != nullptr && !one ? neighbors->out : all;
  if (has_out && (!out.take(job, call.out, outs, to, now.out) || out.load(call.comm) != kSuccess)) return false;
  if (!has_in) return true;
  // What is not written, of a root that keeps its own block, stays as it is.
  return in.take(job, call.in, pattern.ins(), neighbors != nullptr ? neighbors->in : all, now.in) && in.load(call.comm) == kSuccess;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace lacuna::mpi::detail
