// plan: how one layout is packed and unpacked. A tree of steps beside the canonical form, each with its kernel; made
// once, kept with the layout. It hides which part of a form a kernel can take at once.
//
//   form                                  step
//   run                                   run       copy_block
//   loop { run }, loop { loop { run } }   nest      one move, of rows if there are two loops
//   list { run }                          list      one move, offsets in 32 bits where they fit
//   loops { run } that cross              crossed   a transpose: tiles, loops in an order that serves both sides
//   loop or list of a few runs            woven     an array of structs: in windows, or member by member over those
//                                                   that stay in the L1 cache
//   blocks; short runs of any kind        masked    windows with a mask each
//                                         list      or blocks of the length that divides them all
//                                         blocks    or the irregular kernel
//   loop or list of anything else         repeat    the child, again and again
//   sequence                              sequence  one child after another
//
// The canonical form merges neighbours and forgets what they were: a list of structs may arrive here as blocks of
// alternating lengths, a sorted list of numbers as blocks of many. plan.cpp finds such structure again where a kernel
// gains by it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/nest_move.hpp"
#include "lacuna/copy/windows.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

/// Where the entries of a step lie.
struct Spots {
  Access access = Access::stride;
  std::int64_t stride = 0;
  std::vector<std::int32_t> narrow;    ///< Access::list32
  const std::int64_t* wide = nullptr;  ///< Access::list64: the form's own

  [[nodiscard]] std::int64_t offset(std::int64_t i) const {
    if (access == Access::stride) return i * stride;
    return access == Access::list32 ? narrow[static_cast<std::size_t>(i)] : wide[i];
  }
  /// The side of a move that begins with entry `first`, which lies `first * stride` from the step's place if there is a
  /// stride.
  [[nodiscard]] BlockSide side(std::int64_t first) const {
    if (access == Access::stride) return {.stride = stride};
    if (access == Access::list32) return {.offsets = narrow.data() + first};
    return {.offsets = wide + first};
  }
  [[nodiscard]] std::int64_t shift(std::int64_t first) const { return access == Access::stride ? first * stride : 0; }
};

/// The kernels of blocks of one length, to and from a stream.
struct Moved {
  std::int64_t length = 0;
  Kernel pack, unpack;
  Kernel pack_stream, unpack_stream;  ///< for destinations that are in no cache
};

/// One run of each entry of a woven step.
struct Member {
  WindowRun place;
  std::int64_t start = 0;  ///< in the entry's stream
  Moved moved;
};

/// Fields of a batch of structs that are dense along several loops.
struct CrossedFields {
  std::size_t part;   ///< of the sequence
  std::size_t along;  ///< the loop of structs
  NestMove packing, unpacking;
};

/// Of a sequence whose parts are the fields of an array of structs, one field after another in the stream.
struct Structs {
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t batch = 0;              ///< how many at a time, all fields of each; 0: it is none
  std::vector<CrossedFields> crossed;  ///< the other parts are rows
};

struct Step {
  enum class Kind : std::uint8_t { run, nest, crossed, list, blocks, masked, woven, repeat, sequence };

  Kind kind = Kind::run;
  std::int64_t size = 0;
  std::int64_t count = 1;                              ///< entries: blocks of a row, members of a list, structs
  std::int64_t rows = 1;                               ///< nest
  std::int64_t outer = 0;                              ///< nest: from row to row
  std::int64_t chunk = 0;                              ///< woven: entries at a time
  Spots spots;                                         ///< nest, list, woven, repeat
  Moved moved;                                         ///< nest, list
  std::vector<Member> members;                         ///< woven
  std::unique_ptr<const NestMove> packing, unpacking;  ///< crossed
  std::unique_ptr<const Pattern> pattern;              ///< nest: of blocks of a row; woven: of entries
  bool packs_windows = true;                           ///< nest: whether the pattern is for packing too
  bool unpacks_windows = true;                         ///< woven: whether it is for unpacking to caches too
  const WindowKernels* windows = nullptr;
  Masks masks;                         ///< masked
  IrregularKernel irregular{};         ///< blocks
  const layout::Node* node = nullptr;  ///< the part of the form
  Structs structs;                     ///< sequence
  std::vector<Step> children;          ///< repeat: one; sequence: all
};

class CopyPlan final : public layout::Companion {
 public:
  explicit CopyPlan(const layout::Layout& layout);

  /// The plan of a layout, made if it has none. The layout has bytes.
  static const CopyPlan& of(const layout::Layout& layout) {
    const layout::Companion* kept = layout.companion();
    return kept != nullptr ? static_cast<const CopyPlan&>(*kept) : make(layout);
  }

  /// Bytes [position, position + length) of the stream; base and dense as in pack() and unpack().
  void pack(const std::byte* base, std::int64_t position, std::int64_t length, std::byte* dense, Caching caching) const;
  void unpack(std::byte* base, std::int64_t position, std::int64_t length, const std::byte* dense, Caching caching) const;

  [[nodiscard]] const Step& root() const { return root_; }

  /// Whether bytes [position, position + length) of the layout at `base` are in no cache, as two of them say.
  [[nodiscard]] bool is_cold_at(const std::byte* base, std::int64_t position, std::int64_t length) const;
  /// As is_kept(), of all bytes.
  [[nodiscard]] bool is_kept_at(const std::byte* base) const;

  /// How the form of `src` becomes the one of `dst`, whose plan this is, where both are loops over one run; else
  /// nothing. Remembered for one source. Nothing, too, without memory.
  [[nodiscard]] std::shared_ptr<const NestMove> from(const layout::Layout& src, const layout::Layout& dst) const;

  /// The steps and their kernels, a line each.
  [[nodiscard]] std::string describe() const;

 private:
  static const CopyPlan& make(const layout::Layout& layout);
  void pack_past(const std::byte* base, std::int64_t position, std::int64_t length, std::byte* dense) const;

  struct Source {
    layout::Digest digest;
    std::shared_ptr<const NestMove> move;  // null: there is no such way
  };

  Step root_;
  mutable std::mutex last_mutex_;
  mutable std::optional<Source> last_;
  std::int64_t at_ = 0;
  bool streams_ = false;         // some kernel has a form for destinations that are in no cache
  bool packing_leaves_ = false;  // and then some stores pass the caches by
  bool unpacking_leaves_ = false;
};

/// A whole step. `stream`: the destination is in no cache.
void pack_step(const Step& step, const std::byte* scattered, std::byte* dense, bool stream);
void unpack_step(const Step& step, std::byte* scattered, const std::byte* dense, bool stream);

}  // namespace lacuna::copy
