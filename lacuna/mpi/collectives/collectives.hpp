// A collective's blocks with gaps: packed here, moved by the host, unpacked here.
//
// The host gets as many elements as the program said, each of as many bytes, only without gaps. So its algorithms,
// which may cut a buffer into pieces of whole elements, do on each rank what they would have done without us, and every
// rank may decide by itself.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lacuna/mpi/collectives/pattern.hpp"
#include "lacuna/mpi/process/comms.hpp"
#include "lacuna/mpi/process/process.hpp"

namespace lacuna::mpi {

/// One side of a collective as the program says it: blocks for each rank, one behind the other, or each at its place,
/// in extents of one type or in bytes.
template <class Number, class At>
struct Blocks {
  const void* base = nullptr;
  Number count = 0;                 ///< of each block, or
  const Number* counts = nullptr;   ///< one for each
  const At* places = nullptr;       ///< null: one behind the other
  Datatype type{};                  ///< of all blocks, or
  const Datatype* types = nullptr;  ///< one for each
  bool each = false;                ///< whether the call has a count for each, though a rank may say none,
  bool typed = false;               ///< and a type for each

  [[nodiscard]] Count count_of(int i) const { return counts != nullptr ? counts[i] : count; }
  [[nodiscard]] Datatype type_of(int i) const { return types != nullptr ? types[i] : type; }
};

/// What the host gets of a side. Its counts are the program's.
template <class At>
struct Given {
  void* base = nullptr;
  const At* places = nullptr;
  Datatype type{};
  const Datatype* types = nullptr;
};

/// Blocks as the program says them.
template <class Number, class At>
Given<At> as_said(const Blocks<Number, At>& blocks) {
  return {.base = const_cast<void*>(blocks.base), .places = blocks.places, .type = blocks.type, .types = blocks.types};
}

/// One of them, as what it is made of.
struct Block {
  std::byte* base;
  Count count;
  Use type;
  Elements layout;
  std::int64_t bytes;
  std::int64_t packed_at;
  bool moves;  ///< else it has its room among the others, and is neither read nor written
};
/// One into another of as many bytes. False: they do not fit. Without memory it goes piece by piece.
bool copy_block(const Block& from, const Block& to);
/// Packs a block onto this rank's board, there.
void pack_onto(const Board& board, std::int64_t at, const Block& block);
/// Unpacks what a rank's note tells of. False: the rank has no such bytes there, or they do not fit.
bool unpack_from(const Board& board, int rank, const Note& note, const Block* block);
/// All of them; false: they are not understood, and `why`. `places`, unless null: where each begins if they are packed,
/// in elements, or in bytes if they have types of their own. `there`: whether each is somebody's; empty: all are.
template <class Number, class At>
bool list(Process& process, const Blocks<Number, At>& blocks, int number, const std::vector<bool>& there, std::vector<Block>& parts,
          std::vector<std::int64_t>* places, Why& why);
/// Blocks that are packed, or will be.
class PackedSide {
 public:
  /// False: the host is to have them as they are, and `why`: there is nothing to gain, or they are not understood.
  template <class Number, class At>
  bool take(Process& process, MpiUse use, const Blocks<Number, At>& blocks, int number, const std::vector<bool>& there, Why& why);
  [[nodiscard]] bool packed() const { return bounce_.data() != nullptr; }
  /// As they are packed, or as the program said them.
  template <class Number, class At>
  [[nodiscard]] Given<At> given(const Blocks<Number, At>& blocks) const {
    if (!packed()) return as_said(blocks);
    const auto* places = static_cast<const At*>(nullptr);
    if (blocks.places != nullptr) {
      if constexpr (std::is_same_v<At, int>) {
        places = ints_.data();
      } else {
        places = longs_.data();
      }
    }
    return {.base = bounce_.data(), .places = places, .type = type_, .types = blocks.types != nullptr ? types_.data() : nullptr};
  }
  /// One of the blocks.
  void pack(Process& process, int block) const;
  void unpack(Process& process, int block) const;
  [[nodiscard]] int size() const { return static_cast<int>(parts_.size()); }

 private:
  std::vector<Block> parts_;
  Datatype type_{};
  std::vector<Datatype> types_;
  std::vector<int> ints_;
  std::vector<Aint> longs_;
  Bounce bounce_;
};

/// Which blocks of a collective have to do with this rank, and which of them are where they belong.
struct Shape {
  int out = 0, in = 0;  ///< blocks on either side that count here
  enum : int { none = -1, all = -2 };
  int also_out = none;  ///< blocks of `in` that are sent: MPI_IN_PLACE
  int not_in = none;    ///< a block of `in` that nobody writes
  const Neighbors* neighbors = nullptr;
};

/// Both sides of one call, for as long as it lasts.
struct Collection {
  PackedSide out, in;
  Shape shape;
  [[nodiscard]] bool packed() const { return out.packed() || in.packed(); }
  void load(Process& process) const;
  void store(Process& process) const;
};

/// A collective with a request, of ranks of one node, by a board: a persistent one by its own, each other by its place
/// in its communicator's queue (order.hpp). A start packs the blocks onto the board, and
/// the call is over once the notes of all other ranks are there and their blocks are unpacked: no datatype is decoded
/// again, nothing is announced, and the host has no part in it.
class Standing {
 public:
  /// `out` and `in` as in Exchange (exchange.hpp). Throws std::bad_alloc; nothing after that does.
  Standing(const Pattern& pattern, std::vector<Block> out, std::vector<Block> in);
  [[nodiscard]] const Pattern& pattern() const { return pattern_; }
  /// Bytes of the blocks for other ranks on the board.
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// What it goes by, which all ranks have; `numbers`: which of its rank's blocks each block from a neighbor is.
  void use(BoardUse board, std::vector<int> numbers);
  void start();
  /// Instead of both, of one that is started once: the call of that number. No rank has several blocks for another one.
  void start(std::shared_ptr<BoardUse> queue, std::uint32_t call);
  /// Looks whether more is there; whether all is. Waits for nothing.
  bool move();
  [[nodiscard]] int error() const { return error_; }
  /// Each block that is not this rank's own: whether it goes out, what it is and whose.
  void each(const std::function<void(bool out, const Block& block, int peer)>& visit) const;

 private:
  [[nodiscard]] const Block* out_block(int i) const;
  [[nodiscard]] const Block* in_block(int i) const;
  void pack(int i, Note& note);
  void unpack(int i, int rank, const Note& note);
  void begin();
  void show(int rank);
  void hear(int rank, const Note& note);
  void copy_own();
  std::optional<Neighbors> neighbors_;  // the communicator may be freed before
  Pattern pattern_;
  std::vector<Block> out_, in_;
  std::vector<std::int64_t> at_;       // of each block that goes out, on the board
  std::vector<unsigned char> packed_;  // whether it is there
  std::vector<unsigned char> awaited_;
  std::vector<int> numbers_;
  std::int64_t room_ = 0;
  int left_ = 0;  // ranks that are awaited
  int error_ = kSuccess;
  std::shared_ptr<BoardUse> board_;
  std::uint32_t call_ = 0;  // of a queue; 0: the board is of this one alone
};

}  // namespace lacuna::mpi
