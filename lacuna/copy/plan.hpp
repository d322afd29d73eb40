// plan: how one layout is packed and unpacked. A tree of steps beside the canonical form, each with its kernel; made once,
// kept with the layout. It hides which part of a form a kernel can take at once.
//
//   form                             step
//   run                              run       copy_block
//   loop { run }, loop { loop { run }}  nest   one move, of rows if there are two loops
//   list { run }                     list      one move, offsets in 32 bits where they fit
//   blocks                           blocks    the irregular kernel
//   loop or list of a few runs       woven     a move for each run of the child, over as many entries as stay in the L1 cache:
//                                              an array of structs is packed member by member, not struct by struct
//   loop or list of anything else    repeat    the child, again and again
//   sequence                         sequence  one child after another
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/copy/kernels.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

struct Step {
  enum class Kind : std::uint8_t { run, nest, list, blocks, woven, repeat, sequence };

  /// What one move takes: its kernels for both directions, and where the blocks lie on the scattered side.
  struct Moved {
    std::int64_t length = 0;
    std::int64_t count = 0;
    std::int64_t rows = 1;
    Side scattered;
    bool narrow = false;  // a list of 32 bits
    Kernel pack, unpack;
    Kernel pack_stream, unpack_stream;  // for destinations that are in no cache
  };

  Kind kind = Kind::run;
  std::int64_t size = 0;
  const layout::Node* node = nullptr;
  Moved moved;                            // nest, list
  IrregularKernel irregular{};            // blocks
  std::vector<std::int32_t> offsets32;    // list, woven over a list: where they fit
  std::vector<std::int64_t> run_offsets;  // woven: the child's runs
  std::vector<Moved> run_moves;           // woven: one for each of them, count is that of a chunk
  std::vector<std::int64_t> run_starts;   // woven: their places in the child's stream
  std::vector<Step> children;             // repeat, woven: the child; sequence: all

  /// Where block i of a row is, on the scattered side.
  [[nodiscard]] std::int64_t block_offset(std::int64_t i) const {
    return moved.scattered.offsets == nullptr ? i * moved.scattered.stride : node->offset(i);
  }
};

class Plan final : public layout::Companion {
 public:
  explicit Plan(const layout::Layout& layout);

  /// The plan of a layout, made if it has none. The layout has bytes.
  static const Plan& of(const layout::Layout& layout) {
    const layout::Companion* kept = layout.companion();
    return kept != nullptr ? static_cast<const Plan&>(*kept) : make(layout);
  }

  /// Bytes [position, position + length) of the stream; base and dense as in pack() and unpack().
  void pack(const std::byte* base, std::int64_t position, std::int64_t length, std::byte* dense) const;
  void unpack(std::byte* base, std::int64_t position, std::int64_t length, const std::byte* dense) const;

  [[nodiscard]] const Step& root() const { return root_; }

  /// The steps and their kernels, a line each.
  [[nodiscard]] std::string describe() const;

 private:
  static const Plan& make(const layout::Layout& layout);

  Step root_;
  std::int64_t at_ = 0;
  bool streams_ = false;  // some kernel has a form that passes the caches by
};

/// A whole step. `stream`: the destination is in no cache.
void pack_step(const Step& step, const std::byte* scattered, std::byte* dense, bool stream);
void unpack_step(const Step& step, std::byte* scattered, const std::byte* dense, bool stream);

}  // namespace lacuna::copy
