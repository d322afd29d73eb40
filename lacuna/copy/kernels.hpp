// kernels: the innermost loops, chosen from one table by what a move looks like. They hide the instruction set.
//
// A move takes `rows` times `count` blocks of one length from one side to the other. Each side says where block i of a
// row lies: a stride apart, or at an offset from a list. Packing is a move to a dense side, unpacking a move from one,
// and layout to layout is a move between any two; so there is one set of kernels, not three.
//
//        from: stride | list            to: stride | list               length
//     ┌──────────────────────┐      ┌──────────────────────┐      ┌────────────────────────────┐
//     │ base + row * outer   │ ───▶ │ base + row * outer   │      │ 1 2 4 8 16 32: one word    │
//     │      + i * stride    │      │      + i * stride    │      │ next: some that overlap    │
//     │  (or + offsets[i])   │      │  (or + offsets[i])   │      │ more: four at a time, or   │
//     └──────────────────────┘      └──────────────────────┘      │ stores that pass by caches │
//                                                                 └────────────────────────────┘
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna::copy {

inline constexpr std::int64_t kLine = 64;  ///< bytes of a cache line

/// A page of the system has so many bytes, or a multiple.
inline constexpr std::int64_t kPage = 4096;

/// Loads with a mask hold up those behind them where the bytes are in no cache, and take 1.5 times the time. So a whole
/// vector is loaded of which only some bytes are wanted, the first one among them, where it touches no page that has no
/// wanted byte. Here: if the vector ends on the page where it begins.
inline bool in_one_page([[maybe_unused]] const std::byte* from, [[maybe_unused]] std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  return false;  // it would complain of what is behind an object
#else
  return reinterpret_cast<std::uintptr_t>(from) % kPage <= static_cast<std::uintptr_t>(kPage - bytes);
#endif
}
/// The same of `count` vectors, each `stride` bytes behind the one before: so many of the first ones. A page behind one
/// of these holds the first byte of a later one.
inline std::int64_t whole_vectors([[maybe_unused]] std::int64_t count, [[maybe_unused]] std::int64_t stride,
                                  [[maybe_unused]] std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  return 0;
#else
  return stride > 0 && stride <= kPage ? count - (bytes + stride - 1) / stride : 0;
#endif
}

/// How a side says where its blocks are.
enum class Access : std::uint8_t { stride, list32, list64 };

struct BlockSide {
  std::int64_t stride = 0;        ///< from block to block, for Access::stride
  std::int64_t outer = 0;         ///< from row to row
  const void* offsets = nullptr;  ///< int32_t or int64_t, for the lists
};

struct Move {
  std::int64_t length = 0;  ///< bytes of a block
  std::int64_t count = 0;   ///< blocks of a row
  std::int64_t rows = 1;
  BlockSide from;
  BlockSide to;
  std::int64_t known = 0;  ///< of one row: blocks after its last, not to be moved, whose places stand in the lists, too
};

/// Blocks that come from memory are asked for so many blocks before (6 to 12 took as long: docs/notes/copying.md).
inline constexpr std::int64_t kBlocksAhead = 8;

using Run = void (*)(const Move& move, const std::byte* from, std::byte* to);

struct Kernel {
  Run run = nullptr;
  const char* name = "";
  bool streams = false;  ///< stores pass the caches by
};

/// What a kernel is chosen by.
struct Shape {
  Access from = Access::stride;
  Access to = Access::stride;
  std::int64_t length = 0;
  bool from_dense = false;  ///< blocks follow one another without a gap, rows too
  bool to_dense = false;
  bool stream = false;  ///< the destination is in no cache
  bool apart = false;   ///< on a side with gaps no two blocks share a line, as far as their stride says
  /// All blocks of a row of `from` are one, and those of `to` follow one another: a broadcast source.
  bool repeats = false;
};

/// Every shape has a kernel, but for two lists of different widths. The best for this CPU's instruction set.
[[nodiscard]] Kernel kernel_for(const Shape& shape);

/// Blocks of various lengths: starts[i + 1] - starts[i] bytes at offsets[i] on the scattered side, dense on the other.
struct Irregular {
  std::int64_t count;
  const std::int64_t* offsets;
  const std::int64_t* starts;
};
struct IrregularKernel {
  void (*pack)(const Irregular& blocks, const std::byte* from, std::byte* to);
  void (*unpack)(const Irregular& blocks, const std::byte* from, std::byte* to);
  void (*move)(const Irregular& blocks, const std::int64_t* to_offsets, const std::byte* from, std::byte* to);
  const char* name;
};
[[nodiscard]] IrregularKernel irregular_kernel();

/// After stores that passed the caches by, before anything tells another CPU that they are there.
void end_of_streaming();

/// Bytes; shorter blocks from here and there are too slow for the buffers that combine streamed lines.
inline constexpr std::int64_t kLongBlock = 1024;
/// Copies one block; with `stream` the whole cache lines of one of kLongBlock bytes and more pass the caches by.
void copy_block(std::byte* to, const std::byte* from, std::int64_t bytes, bool stream);

}  // namespace lacuna::copy
