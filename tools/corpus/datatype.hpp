// A layout as a program writes it down: constructors and their arguments. The same one becomes a Layout, another MPI's
// datatype, and the loops that a programmer would write instead; that is how these are compared.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::corpus {

struct Datatype {
  using List = std::vector<std::int64_t>;
  enum class Op : std::uint8_t {
    basic,           ///< numbers: bytes
    contiguous,      ///< numbers: count
    vector,          ///< numbers: count, blocklength, stride
    hvector,         ///< the same, the stride in bytes
    indexed,         ///< lists: lengths, displacements
    hindexed,        ///< the same, displacements in bytes
    indexed_block,   ///< numbers: length; lists: displacements
    hindexed_block,  ///< the same, displacements in bytes
    structure,       ///< lists: lengths, displacements in bytes; several members
    subarray,        ///< lists: sizes, subsizes, starts; numbers: 0 for C order, 1 for Fortran's
    resized,         ///< numbers: lower bound, extent
  };

  Op op = Op::basic;
  List numbers;
  std::vector<List> lists;
  std::vector<Datatype> members;  ///< one, the old type, but for basic and structure

  /// A basic type of 1, 2, 4, 8 or 16 bytes.
  static Datatype basic(std::int64_t bytes) { return {Op::basic, {bytes}, {}, {}}; }
  static Datatype contiguous(std::int64_t count, Datatype old) { return one(Op::contiguous, {count}, {}, std::move(old)); }
  static Datatype vector(std::int64_t count, std::int64_t length, std::int64_t stride, Datatype old) {
    return one(Op::vector, {count, length, stride}, {}, std::move(old));
  }
  static Datatype hvector(std::int64_t count, std::int64_t length, std::int64_t stride_bytes, Datatype old) {
    return one(Op::hvector, {count, length, stride_bytes}, {}, std::move(old));
  }
  static Datatype indexed(List lengths, List displacements, Datatype old) {
    return one(Op::indexed, {}, {std::move(lengths), std::move(displacements)}, std::move(old));
  }
  static Datatype hindexed(List lengths, List byte_displacements, Datatype old) {
    return one(Op::hindexed, {}, {std::move(lengths), std::move(byte_displacements)}, std::move(old));
  }
  static Datatype indexed_block(std::int64_t length, List displacements, Datatype old) {
    return one(Op::indexed_block, {length}, {std::move(displacements)}, std::move(old));
  }
  static Datatype hindexed_block(std::int64_t length, List byte_displacements, Datatype old) {
    return one(Op::hindexed_block, {length}, {std::move(byte_displacements)}, std::move(old));
  }
  static Datatype structure(List lengths, List byte_displacements, std::vector<Datatype> members) {
    return {Op::structure, {}, {std::move(lengths), std::move(byte_displacements)}, std::move(members)};
  }
  static Datatype subarray(List sizes, List subsizes, List starts, layout::Order order, Datatype old) {
    return one(Op::subarray, {order == layout::Order::fortran}, {std::move(sizes), std::move(subsizes), std::move(starts)}, std::move(old));
  }
  static Datatype resized(Datatype old, std::int64_t lower_bound, std::int64_t extent) {
    return one(Op::resized, {lower_bound, extent}, {}, std::move(old));
  }
  /// `old` at a byte offset.
  static Datatype at(std::int64_t offset, Datatype old) { return hindexed_block(1, {offset}, std::move(old)); }

  /// Errors: those of the constructors.
  [[nodiscard]] base::Result<layout::Layout> layout() const;

 private:
  static Datatype one(Op op, List numbers, std::vector<List> lists, Datatype old) {
    Datatype made{op, std::move(numbers), std::move(lists), {}};
    made.members.push_back(std::move(old));
    return made;
  }
};

}  // namespace lacuna::corpus
