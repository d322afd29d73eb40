// The limit of a copy on this machine: loops that touch the same cache lines, each once, and store the payload, but
// move nothing to its right place. The best of several is what no copy of this layout can be much faster than.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::bench {

/// The cache lines of one side, each once.
struct Lines {
  struct Line {
    std::int32_t line;   ///< its number from the memory's start, which is at a line's
    std::uint8_t first;  ///< of its bytes the first that belongs to the payload
    std::uint8_t bytes;  ///< that follow it without a gap
  };
  struct Stretch {
    std::int64_t first;
    std::int64_t count;
  };
  std::vector<Line> lines;
  std::vector<Stretch> stretches;  ///< the same lines, in the same order
  std::int64_t payload = 0;
};
enum class Sequence { stream, sorted };
Lines lines_of(const layout::Layout& layout, std::int64_t base, Sequence sequence);

enum class Stores { cached, streaming };

/// Line by line: loads one and stores its share of the payload, or loads the share and stores to the line. No list
/// where lines follow one another.
void limit_pack_by_line(const Lines& lines, const std::byte* memory, std::byte* out);
void limit_unpack_by_line(const Lines& lines, std::byte* memory, const std::byte* in);
/// In batches: reads every line once and stores as many bytes as the payload has.
void limit_pack(const Lines& lines, const std::byte* memory, std::byte* out, Stores stores);
/// Reads as many bytes as the payload has, and stores to payload bytes of each line once (all of it, where all is
/// payload).
void limit_unpack(const Lines& lines, std::byte* memory, const std::byte* in, Stores stores);
/// Reads every line of one side once and stores to every line of the other once.
void limit_transpack(const Lines& from, const std::byte* source, const Lines& to, std::byte* target);

/// Out of all caches, and what they share of the TLB.
void evict(const Lines& lines, const std::byte* memory);
void evict(const std::byte* memory, std::int64_t bytes);
void evict_translations();

}  // namespace lacuna::bench
