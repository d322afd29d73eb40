// piece: one end of a step: a layout, its memory, and what has to be there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulate/ground.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::simulate {

/// Byte `at` of what a step with this seed moves.
[[nodiscard]] std::byte content(std::uint64_t seed, std::int64_t at);

/// So many of them, which each have a place of their own.
[[nodiscard]] std::vector<std::byte> contents(std::uint64_t seed, std::int64_t bytes);

/// What a step with this seed sends, so many bytes: as its sender fills it.
[[nodiscard]] std::vector<std::byte> sent(std::uint64_t seed, std::int64_t bytes);

class Piece {
 public:
  /// A random layout of so many bytes; `receives`: in which no byte occurs twice. Its memory is of `ground`, or, where
  /// that is null, of the heap.
  Piece(std::uint64_t seed, std::int64_t bytes, bool receives, Ground* ground = nullptr);
  ~Piece();
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  [[nodiscard]] const layout::Layout& layout() const { return sample_.layout; }
  [[nodiscard]] std::byte* base() { return memory_.data() - low_; }
  /// What is sent, in its places; what is between them is noise.
  void fill(std::uint64_t of);
  /// The first byte is another one.
  void spoil_first();
  /// All of the memory as it is before something is received.
  void spoil();
  /// The bytes, in the order of the layout: a byte that occurs twice is what was put there last.
  [[nodiscard]] std::vector<std::byte> stream() const;
  /// Empty: in the places are these bytes, and beside them what spoil() left.
  [[nodiscard]] std::string check(const std::vector<std::byte>& came) const;

 private:
  support::Sample sample_;
  std::vector<std::int64_t> places_;
  std::int64_t low_ = 0;
  Ground* ground_;
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
};

}  // namespace lacuna::simulate
