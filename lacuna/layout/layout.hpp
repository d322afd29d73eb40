// layout: which bytes, in which order. It hides how a layout was written down.
//
//   constructors ──▶ canonical form ──▶ cursor ──▶ strips (what copy and the NICs consume)
//                         │    └──────▶ wire form ──▶ a peer, which checks it as hostile input
//                         └─ digest (the key of every cache)
//
// A Layout is an immutable value: an ordered list of byte runs relative to a base address (MPI's typemap, without the
// types), a lower bound and an extent. It is cheap to copy and safe to share between threads.
//
// The canonical form keeps typemap order: what is packed first stays first. Layouts with the same runs in the same
// order have the same canonical form and the same digest, whichever constructors wrote them; canonical.hpp states how,
// and the two cases beyond which that promise is not made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/base/base.hpp"

namespace lacuna::layout {

using base::Result;

/// No offset, bound, extent or size may be farther from zero than this (2^60 bytes, an exbibyte), so that the sums and
/// differences of any few of them fit 64 bits. Constructors answer with Code::overflow beyond it.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 60;

/// 128 bits that name a typemap: equal digests mean equal runs in equal order.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Digest&) const = default;
};

/// One contiguous piece of a layout: `length` bytes at `offset` from the base address.
struct Run {
  std::int64_t offset;
  std::int64_t length;
  auto operator<=>(const Run&) const = default;
};

/// What a cursor yields: `count` runs at once, in one of three shapes, so that a copy kernel is chosen once for all of
/// them.
///   regular    run i has `length` bytes at offset + i * stride           (offsets == nullptr)
///   indexed    run i has `length` bytes at offset + offsets[i]           (starts == nullptr)
///   irregular  run i has starts[i+1] - starts[i] bytes at offset + offsets[i]
struct Strip {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  const std::int64_t* offsets = nullptr;
  const std::int64_t* starts = nullptr;

  [[nodiscard]] Run run(std::int64_t i) const {
    if (offsets == nullptr) return {offset + i * stride, length};
    return {offset + offsets[i], starts == nullptr ? length : starts[i + 1] - starts[i]};
  }
  [[nodiscard]] std::int64_t bytes() const { return starts == nullptr ? count * length : starts[count] - starts[0]; }
};

/// The kinds of nodes of a canonical form.
enum class NodeKind : std::uint8_t {
  run,       ///< one run at 0
  loop,      ///< children[0] at i * stride, i < count
  list,      ///< children[0] at offsets[i]
  blocks,    ///< runs of starts[i+1] - starts[i] bytes at offsets[i]
  sequence,  ///< children[i] at offsets[i], at starts[i] of the packed stream
};

/// The canonical form, a tree: what the layers below look at to choose a kernel or a method. Offsets count from the
/// first run's offset, so a node is a shape without a place; offsets[0] is 0. Immutable, shared between layouts.
struct Node {
  NodeKind kind = NodeKind::run;
  int depth = 1;
  bool leaf = true;  ///< a run, blocks, or a loop or list of runs: what one strip can describe
  std::int64_t size = 0;
  std::int64_t runs = 1;
  std::int64_t low = 0;   ///< lowest byte
  std::int64_t high = 0;  ///< one past the highest byte
  std::int64_t tail = 0;  ///< one past the last run in order
  std::int64_t count = 1;
  std::int64_t stride = 0;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> starts;  ///< packed positions, one more than entries
  std::vector<std::shared_ptr<const Node>> children;
  Digest digest;
  /// The same bytes as loops over one run, where the layout was made so and runs of neighbouring copies that touch hide
  /// it: a transpose whose last element is followed by the next one's first. Not part of the digest. Null otherwise.
  std::shared_ptr<const Node> loops;

  [[nodiscard]] std::int64_t entries() const { return kind == NodeKind::loop ? count : static_cast<std::int64_t>(offsets.size()); }
  [[nodiscard]] std::int64_t offset(std::int64_t i) const {
    return kind == NodeKind::loop ? i * stride : offsets[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const std::shared_ptr<const Node>& child(std::int64_t i) const {
    return children[kind == NodeKind::sequence ? static_cast<std::size_t>(i) : 0];
  }
};

/// What a layer below computes from a layout once and keeps with it; it goes when the layout goes.
class Companion {
 public:
  Companion() = default;
  virtual ~Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
};

enum class Order { c, fortran };                   ///< which array index is the slowest: the first, the last
enum class Distribution { none, block, cyclic };   ///< darray's distribution of one dimension
inline constexpr std::int64_t kDefaultBlock = -1;  ///< darray's MPI_DISTRIBUTE_DFLT_DARG

class Layout {
 public:
  /// The empty layout: no bytes, extent 0.
  Layout();

  // Constructors. Counts, lengths and displacements mean what they mean in MPI (MPI-4.1, section 5.1): those of
  // vector, indexed and indexed_block count extents of `old`, those of the h-forms count bytes. There is no alignment
  // padding (MPI's epsilon): bytes have no type; say resized() where an extent is padded. All are 64-bit.
  // Errors: invalid_argument (a negative count or length, lists of different lengths), overflow (beyond kMaxBytes).

  /// `count` bytes.
  static Result<Layout> bytes(std::int64_t count);
  static Result<Layout> contiguous(std::int64_t count, const Layout& old);
  static Result<Layout> vector(std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old);
  static Result<Layout> hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride_bytes, const Layout& old);
  static Result<Layout> indexed(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> displacements, const Layout& old);
  static Result<Layout> hindexed(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                 const Layout& old);
  static Result<Layout> indexed_block(std::int64_t blocklength, std::span<const std::int64_t> displacements, const Layout& old);
  static Result<Layout> hindexed_block(std::int64_t blocklength, std::span<const std::int64_t> byte_displacements, const Layout& old);
  static Result<Layout> structure(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                  std::span<const Layout> members);
  /// The same where many members are of few layouts: member i is layouts[which[i]].
  static Result<Layout> structure(std::span<const std::int64_t> blocklengths, std::span<const std::int64_t> byte_displacements,
                                  std::span<const Layout> layouts, std::span<const std::uint32_t> which);
  /// A box of `subsizes` at `starts` in an array of `sizes`; the extent is the whole array's.
  static Result<Layout> subarray(std::span<const std::int64_t> sizes, std::span<const std::int64_t> subsizes,
                                 std::span<const std::int64_t> starts, Order order, const Layout& old);
  /// Process `rank`'s part of an array distributed over a grid of processes (row-major, as in MPI).
  static Result<Layout> darray(std::int64_t processes, std::int64_t rank, std::span<const std::int64_t> sizes,
                               std::span<const Distribution> distributions, std::span<const std::int64_t> block_sizes,
                               std::span<const std::int64_t> grid, Order order, const Layout& old);
  static Result<Layout> resized(const Layout& old, std::int64_t lower_bound, std::int64_t extent);
  static Layout dup(const Layout& old) { return old; }
  /// Runs of `lengths` bytes at `offsets` bytes, in this order.
  static Result<Layout> blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths);
  /// Blocks of `block_bytes` at page_numbers[i] * block_bytes, in this order.
  static Result<Layout> paged(std::int64_t block_bytes, std::span<const std::int64_t> page_numbers);
  /// The elements of a strided array in index order, last index fastest (NumPy's shape and strides, in elements and
  /// bytes).
  static Result<Layout> strided(std::int64_t item_bytes, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides_bytes);

  /// The runs that hold bytes [position, position + length) of this layout's packed stream; its bounds are its lowest
  /// and its highest byte. In the time that the form's depth takes, and the lists on its way: more than 64 runs keep
  /// the form that they have here, which may be another than the canonical one, with another digest. Errors:
  /// invalid_argument (not within the stream).
  [[nodiscard]] Result<Layout> slice(std::int64_t position, std::int64_t length) const;

  // Properties; all in bytes, all O(1).
  [[nodiscard]] std::int64_t size() const;       ///< bytes of data: the length of the packed stream
  [[nodiscard]] std::int64_t run_count() const;  ///< contiguous runs, after merging neighbours
  [[nodiscard]] std::int64_t lower_bound() const;
  [[nodiscard]] std::int64_t extent() const;            ///< distance between two consecutive elements of this layout
  [[nodiscard]] std::int64_t true_lower_bound() const;  ///< offset of the lowest byte; 0 if empty
  [[nodiscard]] std::int64_t true_extent() const;       ///< highest byte + 1 - lowest byte; 0 if empty
  [[nodiscard]] bool contiguous_bytes() const { return run_count() <= 1; }
  [[nodiscard]] Digest digest() const;  ///< of the runs and their order; bounds and extent have no part in it
  [[nodiscard]] int depth() const;      ///< levels of the canonical form; at most 128, since levels multiply runs

  /// Whether some byte occurs twice, so that receiving into the layout has no defined result. Exact, computed once and
  /// remembered; Code::limit for a layout of more than 2^24 runs that nests in a way no rule here can decide.
  [[nodiscard]] Result<bool> overlaps() const;

  /// The canonical form: its root, null if there are no bytes, and the offset of its first run. They live as long as
  /// this value or a copy.
  [[nodiscard]] const Node* form() const;
  [[nodiscard]] std::int64_t form_offset() const;
  /// What was kept with the layout, or null; keep() answers with what is kept, which is the argument unless another
  /// thread was first. All copies of a layout share it. There is one place, and copy has it.
  [[nodiscard]] const Companion* companion() const;
  const Companion* keep(std::unique_ptr<const Companion> made) const;

  /// The canonical form as text: "768 x +24576 B { 16 B }".
  [[nodiscard]] std::string describe() const;

  [[nodiscard]] bool same_runs(const Layout& other) const { return digest() == other.digest(); }

 private:
  friend class Cursor;
  friend struct Access;
  struct State;
  explicit Layout(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Walks the packed stream of a layout: seek anywhere in O(depth · log), then take strips in order. It is the unit of
/// progress: fragments in any order cost what they cost in order. Keeps its layout alive.
class Cursor {
 public:
  explicit Cursor(const Layout& layout);

  /// Moves to byte `position` of the packed stream, 0 <= position <= size().
  void seek(std::int64_t position);
  [[nodiscard]] std::int64_t position() const { return position_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] bool done() const { return position_ >= size_; }

  /// The next strip, of at most `max_bytes` > 0 bytes, and steps over it. count == 0 at the end. A run is cut only
  /// where the position or `max_bytes` falls inside it.
  Strip next(std::int64_t max_bytes);
  /// The next single run, of at most `max_bytes` > 0 bytes, and steps over it. length == 0 at the end.
  Run next_run(std::int64_t max_bytes);

 private:
  struct Frame {
    const Node* node;
    std::int64_t base;
    std::int64_t index;
  };
  void descend(const Node* node, std::int64_t base, std::int64_t within);
  void advance_leaf();

  std::shared_ptr<const Layout::State> layout_;
  std::vector<Frame> frames_;   // inner nodes from the root down; empty if the root is a leaf
  const Node* leaf_ = nullptr;  // a run, a loop or list of runs, or a list of blocks
  std::int64_t leaf_base_ = 0;
  std::int64_t leaf_index_ = 0;   // run within the leaf
  std::int64_t leaf_within_ = 0;  // byte within the run
  std::int64_t position_ = 0;
  std::int64_t size_ = 0;
};

/// The elements of an array, as Layout::strided() takes them; relative to the first one.
struct StridedArray {
  std::int64_t item_bytes = 0;
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;  ///< in bytes
};

/// Whether a byte belongs to both arrays, of which `b` begins `distance` bytes behind `a`. Exact, however they
/// interleave; either may name bytes twice. Errors: limit (strides so contrived that a million steps do not decide it),
/// overflow, invalid_argument.
Result<bool> share_bytes(const StridedArray& a, const StridedArray& b, std::int64_t distance);

/// Errors: invalid_argument if the sizes differ.
Result<void> check_sizes(const Layout& src, const Layout& dst);

/// A piece that is contiguous on both sides.
struct Piece {
  std::int64_t src;
  std::int64_t dst;
  std::int64_t length;
  auto operator<=>(const Piece&) const = default;
};

/// The minimal list of pieces that moves one layout's stream into another's, produced one by one. The sizes must be
/// equal. It can start and stop anywhere in the stream, which is how a chain of work requests is cut.
class Intersection {
 public:
  /// Errors: invalid_argument if the sizes differ.
  static Result<Intersection> of(const Layout& src, const Layout& dst);

  void seek(std::int64_t position);
  [[nodiscard]] std::int64_t position() const { return position_; }
  [[nodiscard]] bool done() const { return src_.done() && src_run_.length == 0; }
  /// The next piece, of at most `max_bytes` > 0 bytes. length == 0 at the end.
  Piece next(std::int64_t max_bytes = kMaxBytes);

 private:
  Intersection(const Layout& src, const Layout& dst) : src_(src), dst_(dst) {}
  Cursor src_, dst_;
  Run src_run_{}, dst_run_{};
  std::int64_t position_ = 0;
};

// --- outlines: what can be said of layouts without walking them ------------------------------------------------------

/// A layout as somebody sees it who has to guess what moving it takes. Bytes, runs and span are exact, the rest is
/// sampled.
struct Outline {
  std::int64_t bytes = 0;
  std::int64_t runs = 0;
  std::int64_t span = 0;    ///< true extent
  std::int64_t stride = 0;  ///< of a layout that is one loop of runs, else 0
  double listed = 0;        ///< the share of runs whose places are listed one by one instead of following from a stride
  double uneven = 0;        ///< standard deviation of the runs' lengths over their mean

  double lines = 0;  ///< cache lines of 64 B that hold the runs, at most
  double pages = 0;  ///< pages of 4 KiB that do

  [[nodiscard]] bool contiguous() const { return runs <= 1; }
  /// Counts lines and pages, from bytes, runs and span.
  void count_units();
};

/// The same of a pair.
struct PairOutline {
  Outline src, dst;
  double pieces = 0;  ///< of the intersection
  double paired = 0;  ///< runs of the side that has more of them, place by place: what fills a pair of lists
  [[nodiscard]] std::int64_t bytes() const { return src.bytes; }
};

[[nodiscard]] Outline outline(const Layout& layout);
/// In a few microseconds at most, whatever their number of runs. The sizes are equal.
[[nodiscard]] PairOutline outline(const Layout& src, const Layout& dst);

// --- the wire form ---------------------------------------------------------------------------------------------------

/// What a decoder accepts from a peer before it believes anything.
struct WireLimits {
  std::int64_t max_bytes = std::int64_t{64} << 20;   ///< length of the encoded form
  std::int64_t max_entries = std::int64_t{1} << 24;  ///< entries of all lists together
  int max_depth = 128;                               ///< nesting
};

/// A few bytes that describe a layout to a peer: a loop is a loop, lists are delta coded.
[[nodiscard]] std::vector<std::byte> encode(const Layout& layout);

/// The inverse of encode(), for bytes from anywhere. Whatever they hold, the answer is a valid layout or an error:
/// malformed (truncated, unknown, trailing bytes), overflow, limit.
[[nodiscard]] Result<Layout> decode(std::span<const std::byte> wire, const WireLimits& limits = {});

}  // namespace lacuna::layout
