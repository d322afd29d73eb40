// One block: words of the compiler's vectors, and how many of them make a length. Included once for each instruction
// set, into its namespace.
#if defined(LACUNA_COPY_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LACUNA_COPY_BLOCKS_INL
#undef LACUNA_COPY_BLOCKS_INL
#else
#define LACUNA_COPY_BLOCKS_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "lacuna/copy/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Index = std::int64_t;

// N bytes, N a power of two, on their way: up to 8 in a general register, of whose stores a CPU can do two at a time;
// more in vectors of whatever width the instruction set has.
template <int N>
struct Bytes {
  using Type __attribute__((vector_size(N))) = std::uint8_t;
};
template <>
struct Bytes<1> {
  using Type = std::uint8_t;
};
template <>
struct Bytes<2> {
  using Type = std::uint16_t;
};
template <>
struct Bytes<4> {
  using Type = std::uint32_t;
};
template <>
struct Bytes<8> {
  using Type = std::uint64_t;
};
template <int N>
struct Word {
  typename Bytes<N>::Type value;
  explicit Word(const std::byte* from) { std::memcpy(&value, from, N); }
  void store(std::byte* to) const { std::memcpy(to, &value, N); }
};

// 12 bytes, which are stored as 16. A load with a mask takes 0.9 of the time in a cache, and 1.8 from memory.
struct Twelve {
  using Vector __attribute__((vector_size(16))) = std::uint64_t;
  Vector value;
  explicit Twelve(const std::byte* from) {
    std::uint64_t low = 0;
    std::uint32_t high = 0;
    std::memcpy(&low, from, sizeof low);
    std::memcpy(&high, from + 8, sizeof high);
    value = Vector{low, high};
  }
  void store(std::byte* to) const { std::memcpy(to, &value, sizeof value); }
};

// The same, but the compiler may not join neighbouring ones to a larger one.
template <int N>
struct Part : Word<N> {
  explicit Part(const std::byte* from) : Word<N>(from) {
#if HWY_ARCH_X86
    if constexpr (N <= 8) asm("" : "+r"(this->value));
    if constexpr (N > 8) asm("" : "+x"(this->value));
#endif
  }
};

// 32 bytes in two loads, which cost nothing in a cache, and are a third faster than one where the destination turns out
// to be at hand, and the source not.
struct Halves {
  Part<16> low;
  Part<16> high;
  explicit Halves(const std::byte* from) : low(from), high(from + 16) {}
  void store(std::byte* to) const {
    const auto both = __builtin_shufflevector(low.value, high.value, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                              20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    std::memcpy(to, &both, sizeof both);
  }
};

// A block of exactly as many bytes as a word has.
template <class W>
struct Exact {
  static void move(Index, const std::byte* from, std::byte* to) { W(from).store(to); }
};

// More than a word and less than two: the first and the last.
template <class W, int N>
struct Pair {
  static void move(Index length, const std::byte* from, std::byte* to) {
    const W first(from);
    const W last(from + length - N);
    first.store(to);
    last.store(to + length - N);
  }
};

// Up to Words words of N bytes, more than one word less: all of them without a branch, the last one overlaps.
template <class W, int Words, Index N = 32>
struct Several {
  static void move(Index length, const std::byte* from, std::byte* to) {
#pragma GCC unroll 8
    for (Index at = 0; at < (Words - 1) * N; at += N) W(from + at).store(to + at);
    W(from + length - N).store(to + length - N);
  }
};

// More: four words of N bytes at a time, then one; the last one overlaps. memcpy is no faster, and up to sixteen times
// slower where source and destination are a multiple of 4 KiB apart, less a little (its string moves then wait for
// themselves).
template <class W, Index N = 32>
struct Vectors {
  // From here on stores that cross no line pay for the way there.
  static constexpr Index kAligned = N == 64 ? 448 : 1024;
  static void move(Index length, const std::byte* from, std::byte* to) {
    Index at = 0;
    if (length >= kAligned) {
      W(from).store(to);
      at = N - (reinterpret_cast<std::intptr_t>(to) & (N - 1));
    }
    for (; at + 4 * N <= length; at += 4 * N) {
      const W a(from + at);
      const W b(from + at + N);
      const W c(from + at + 2 * N);
      const W d(from + at + 3 * N);
      a.store(to + at);
      b.store(to + at + N);
      c.store(to + at + 2 * N);
      d.store(to + at + 3 * N);
    }
    for (; at < length - N; at += N) W(from + at).store(to + at);
    W(from + length - N).store(to + length - N);
  }
};

// Blocks of more than 128 bytes. Vectors of 64 bytes where all CPUs of the instruction set keep their clock with them.
// On an EPYC of 2024 they are up to twice as fast as those of 32 in the caches, on one of 2022 as fast.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
using Wide = Word<64>;
inline constexpr Index kWide = 64;
#else
using Wide = Word<32>;
inline constexpr Index kWide = 32;
#endif

// Blocks of some KiB that a second-level cache holds: there memcpy's string moves are up to 1.7 times as fast as a loop
// (an EPYC of 2024). In the first-level cache loops are faster. From 1 MiB to 8 MiB memcpy was 0.75 to 1.0 of a loop.
struct Long {
  // Whether that is so of blocks of this length, `all` bytes together.
  static bool by_memcpy(Index length, Index all) { return length >= 3072 && all >= 24 << 10 && all <= 8 << 20; }
  static void move(Index length, const std::byte* from, std::byte* to, bool by_memcpy) {
    // String moves wait for themselves where the two are nearly a multiple of 4 KiB apart.
    const Index apart = (to - from) & (kPage - 1);
    if (by_memcpy && (apart == 0 || (apart >= kLine && apart <= kPage - 2 * kLine))) {
      std::memcpy(to, from, static_cast<std::size_t>(length));
    } else {
      Vectors<Wide, kWide>::move(length, from, to);
    }
  }
};

// Whole cache lines of the destination pass the caches by: no line is read before it is overwritten, and none is pushed
// out. A short block that covers its lines only in part is better off without.
struct Streamed {
  static constexpr Index kShort = 256;
  /// `Apart`: the source has gaps. Four loads go before their stores then, each of which would wait for the load
  /// before. A dense source, which is there in time, takes a tenth longer so.
  template <bool Apart = false>
  static void move(Index length, const std::byte* from, std::byte* to) {
    const Index head = -reinterpret_cast<std::intptr_t>(to) & 63;
    if (length < kShort && (head != 0 || length % 64 != 0)) return Vectors<Part<16>, 16>::move(length, from, to);
    if (head != 0) std::memcpy(to, from, static_cast<std::size_t>(head));
    using D = hn::CappedTag<std::uint8_t, 64>;
    const auto lanes = static_cast<Index>(hn::Lanes(D()));
    const auto load = [from](Index i) { return hn::LoadU(D(), reinterpret_cast<const std::uint8_t*>(from + i)); };
    const auto stream = [to](const auto& bytes, Index i) { hn::Stream(bytes, D(), reinterpret_cast<std::uint8_t*>(to + i)); };
    Index at = head;
    for (; Apart && at + 4 * lanes <= length; at += 4 * lanes) {
      const auto a = load(at), b = load(at + lanes), c = load(at + 2 * lanes), d = load(at + 3 * lanes);
      stream(a, at);
      stream(b, at + lanes);
      stream(c, at + 2 * lanes);
      stream(d, at + 3 * lanes);
    }
    for (; at + 64 <= length; at += 64) {
      for (Index i = 0; i < 64; i += lanes) stream(load(at + i), at + i);
    }
    if (at < length) std::memcpy(to + at, from + at, static_cast<std::size_t>(length - at));
  }
};

// A CPU sees the lines of a long block coming once it has met the first ones, so it waits for these at each block.
// They are asked for kBlocksAhead blocks before: all lines of a short block, the first line of a longer one, whose
// others the CPU asks for by itself then. Figures: docs/notes/copying.md, slices of heads.
constexpr Index kLeastAsked = 256;  // bytes of a block; shorter ones were not measured
HWY_INLINE void ask_for(Index length, const std::byte* block) {
  constexpr Index kAllLines = 512;
  hwy::Prefetch(block);
  if (length > kAllLines) return;
  for (Index at = kLine; at < length - 1; at += kLine) hwy::Prefetch(block + at);
  hwy::Prefetch(block + length - 1);  // a block that begins within a line has one more
}

}  // namespace
}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
