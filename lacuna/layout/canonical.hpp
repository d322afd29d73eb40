// The canonical form: a tree of five kinds of nodes over maximal runs, a function of the runs and their order alone.
//
// How equal typemaps end equal. Let w be the sequence of maximal runs (neighbours in order that touch are one run).
//   1. If w is a power, that is, some prefix v repeated at a constant stride, then form(w) = loop(form(v)) for the
//     shortest
//      such v. The shortest one is unique (Fine and Wilf: two periods that divide |w| have a common one), so loops that
//      were split, fused or written as lists come together here. 3D faces, subarrays and transposes are powers of
//      powers.
//   2. Otherwise w is parsed from the left into the longest stretches that repeat with a period of at most
//     kLongestPeriod
//      items and stand for at least kShortestLoop runs, again and again until nothing changes (a fixed point); then
//      what
//      is left over is grouped into lists of one shape, blocks, and sequences.
// Both steps look at w only. repeat() takes a short cut that gives the same answer without spelling w out: a power of a
// form is a loop around it, or a longer loop.
//
// Where the promise ends: join() spells its parts out to w only up to kFlattenLimit runs, and not at all where one of
// them has a long list of a nested block, of more than kNestedListLimit runs (State::kept). Then it works on the parts
// as they are, so that (a) two spellings of such a sequence or list may keep different forms, and (b) neighbours inside
// it that touch may stay unmerged. Such a layout is still right, only its digest is its own.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::layout {

/// ~1 ms of commit time; every DDTBench struct is far below it.
inline constexpr std::int64_t kFlattenLimit = 1 << 16;
/// 40 us. Page tables are longer, and there is another one with each request.
inline constexpr std::int64_t kNestedListLimit = 1 << 10;
/// Places of a list whose nested block keeps its form. A few large blocks are spelled out, as in a struct of them.
inline constexpr std::int64_t kShortestTable = 64;
/// Members of an array of structs that a sequence may hold.
inline constexpr std::int64_t kLongestPeriod = 16;
/// Runs; shorter chance progressions in index lists are no loops.
inline constexpr std::int64_t kShortestLoop = 32;

using NodePtr = std::shared_ptr<const Node>;

// A shape in its place. A run has no node: an index list of a million entries then is a million small structs.
struct Item {
  std::int64_t at = 0;
  std::int64_t length = 0;  // bytes of data
  NodePtr node;

  [[nodiscard]] std::int64_t runs() const { return node ? node->runs : 1; }
  [[nodiscard]] std::int64_t low() const { return at + (node ? node->low : 0); }
  [[nodiscard]] std::int64_t high() const { return at + (node ? node->high : length); }
  [[nodiscard]] std::int64_t tail() const { return at + (node ? node->tail : length); }
};

// Items that hold no bytes have no place in a form: callers of these three keep them out.

/// `count` > 0 copies of `item`, `stride` bytes apart. Errors: overflow.
Result<Item> repeat(const Item& item, std::int64_t count, std::int64_t stride);
/// The items one after another, at least one. Beyond `limit` runs they keep their forms. Errors: overflow.
Result<Item> join(std::vector<Item> items, std::int64_t limit = kFlattenLimit);
/// What is known of a list of runs without another look at it.
struct RunFacts {
  bool touching = false;        ///< a run may begin where the one before it ends; then the next is not looked at
  std::int64_t most_alike = 0;  ///< runs of one length that follow one another, at most
};
/// The runs of lengths[i] > 0 bytes at offsets[i], at least one: join() of as many items, without making them. Offsets,
/// lengths and ends are within kMaxBytes, which is not checked. Errors: overflow.
Result<Item> join_runs(std::vector<std::int64_t> offsets, std::vector<std::int64_t> lengths,
                       const RunFacts& facts = {.touching = true, .most_alike = 0});
/// The same of runs that are all of one length, a page table's usual case, which needs no second list unless some that
/// follow one another touch.
Result<Item> join_blocks(std::vector<std::int64_t> offsets, std::int64_t length, bool touching);
/// Copies of a nested block at `offsets`, at least one, none of which touches the next: join() of as many items, which
/// keep their form. Offsets are within kMaxBytes. Errors: overflow.
Result<Item> join_copies(std::vector<std::int64_t> offsets, const Item& block);
/// The second step of the argument above, and the first: the form of items that are as they should be.
Item compress(std::vector<Item> items);
/// The canonical form of an item of at most kFlattenLimit runs, whatever form it has.
Item spelled_out(const Item& item);
/// The node of an item, made if it is a run.
NodePtr node_of(const Item& item);

/// The least and the greatest, of at least one. std::ranges::minmax compares neighbours first, which in a list without
/// order is mispredicted every other time.
struct Extremes {
  std::int64_t least;
  std::int64_t greatest;
};
inline Extremes extremes(std::span<const std::int64_t> numbers) {
  Extremes found{numbers[0], numbers[0]};
  for (const std::int64_t number : numbers) {
    found.least = number < found.least ? number : found.least;
    found.greatest = number > found.greatest ? number : found.greatest;
  }
  return found;
}

NodePtr make_run(std::int64_t length);
NodePtr make_loop(const Item& item, std::int64_t count, std::int64_t stride);
NodePtr make_list(std::vector<std::int64_t> offsets, const Item& item);
NodePtr make_blocks(std::vector<std::int64_t> offsets, std::vector<std::int64_t> starts);
NodePtr make_sequence(const std::vector<Item>& items);

struct Layout::State {
  NodePtr root;  // null if empty
  std::int64_t at = 0;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool marked = false;  // the bounds were set by resized, subarray or darray: MPI's markers
  bool kept = false;    // it was not spelled out, nor is what is made of it: a long list of a nested block is in it
  Digest digest;
  mutable std::atomic<signed char> overlaps{-1};  // -1 unknown, else the answer
  mutable std::atomic<const Companion*> companion{nullptr};

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { delete companion.load(std::memory_order_acquire); }
};

// How the other files of this layer get at a Layout's parts.
struct Access {
  static const Layout::State& state(const Layout& layout) { return *layout.state_; }
  static Item item(const Layout& layout);
  /// Errors: overflow if a bound is beyond kMaxBytes.
  static Result<Layout> make(const Item* item, std::int64_t lower, std::int64_t upper, bool marked, bool kept = false);
};

}  // namespace lacuna::layout
