// copy: moves the bytes of a layout with the CPU. It hides how: which kernels, which instructions, what stays in the
// caches.
//
// Addresses are a base pointer plus the layout's offsets. Positions count bytes of the packed stream; any fragment
// [position, position + length) can be moved at any time, in any order. Callers guarantee that base + every offset of
// the fragment is memory of theirs: a Layout does not know how large a buffer is (nic regions do).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

using layout::Layout;

/// What becomes of the caches where bytes are written.
enum class Caching : std::uint8_t {
  asked,  ///< long pieces pass them by if the destination is in none of them, which is asked of the memory itself
  kept,   ///< they take what is written
  /// whole lines pass them by, as is best where this CPU needs them no more and another one reads them, or none soon
  passed,
};

/// Copies bytes [position, position + length) of the packed stream of `layout` at `base` to `out`.
/// Requires 0 <= position, 0 <= length, position + length <= layout.size().
void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
          Caching caching = Caching::asked);

/// The inverse of pack(): writes `in` to the bytes that the fragment names, and to no others.
void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
            Caching caching = Caching::asked);

/// Moves the whole of `src` at `src_base` into `dst` at `dst_base` in one pass, without staging. The buffers must not
/// overlap. Errors: invalid_argument if the sizes differ.
base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base);

/// Moves the elements of one array to those of another of the same shape, whatever their strides, without a layout of
/// either. The bytes that are written are apart from those that are read, and each is written once. Throws
/// std::bad_alloc. Errors: invalid_argument (shapes or elements differ).
base::Result<void> move_array(const layout::StridedArray& src, const std::byte* src_base, const layout::StridedArray& dst,
                              std::byte* dst_base);

/// Copies `bytes` >= 0 contiguous bytes between places that do not overlap: memcpy without its dear start for short
/// blocks, and without its slow string moves where the two places are almost a multiple of 4 KiB apart. Not for what
/// another thread must see at once.
void block(std::byte* to, const std::byte* from, std::int64_t bytes);

/// Pieces that lie anywhere on both sides and that no layout describes: collected, and moved many at a time by the
/// kernels of lists. They do not overlap, and no other thread may look at one before move() has returned: they are
/// moved in no order that could be relied on.
class Pieces {
 public:
  /// `bytes` > 0. The memory stays until move().
  void add(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (bytes > kShort) return block(to, from, bytes);
    if (count_ == kMost) move();
    if (count_ == 0) {
      to_ = to;
      from_ = from;
      starts_[0] = 0;
    }
    to_offsets_[count_] = to - to_;
    from_offsets_[count_] = from - from_;
    even_ = count_ == 0 || (even_ && bytes == starts_[1]);
    starts_[count_ + 1] = starts_[count_] + bytes;
    ++count_;
  }
  /// Moves what was added and is not there yet.
  void move();

 private:
  static constexpr std::int64_t kShort = 128;  // what is longer hides the call that moves it
  static constexpr std::size_t kMost = 256;    // 6 KiB of places: they stay in the L1 cache
  std::size_t count_ = 0;
  bool even_ = true;  // all of one length
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  std::array<std::int64_t, kMost> to_offsets_, from_offsets_;
  std::array<std::int64_t, kMost + 1> starts_;  // of a piece in the stream of them all
};

/// Makes what packing and unpacking a layout needs, which is otherwise made at first use; MPI_Type_commit's moment.
void prepare(const Layout& layout);
/// The canonical form's steps with the kernel of each, a line each; empty for a layout of no bytes.
[[nodiscard]] std::string describe_kernels(const Layout& layout);
/// "AVX3": the instruction set that the kernels use on this CPU, by Highway's name.
[[nodiscard]] const char* instruction_set();

/// Threads that copy together; who makes one allows them. One caller at a time. A copy of less than some 256 KiB for
/// each thread is done by fewer of them.
class Team {
 public:
  /// `threads` >= 1, the caller's own among them.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// As copy::pack() and copy::unpack(). Unpacking asks that no byte of the layout occurs twice.
  void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out);
  void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in);
  /// As copy::transpack(). No byte of `dst` occurs twice.
  base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The scalar references: one byte after another, from one cursor. Every fast path is tested against them.
namespace reference {
void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out);
void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in);
base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base);
}  // namespace reference

}  // namespace lacuna::copy
