// What is moved, and the proof that it arrived. The stream of a seed is a function of the position alone, so both ranks
// know it; rank 0 writes it into the source run by run, rank 1 compares run by run: nothing but the naive walk of
// either layout decides what is right. All other memory of rank 1 holds a pattern, a function of the address. After a
// comparison the payload is overwritten with it too, so that a stray write shows as a difference from the pattern
// wherever the windows look.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/measure.hpp"

namespace lacuna::measure {

/// Bytes [0, bytes) of the stream of `seed`.
[[nodiscard]] std::vector<std::byte> stream_of(std::uint64_t seed, std::int64_t bytes);
/// Writes a stream of layout.size() bytes into the layout at `base`.
void write_stream(const Layout& layout, std::byte* base, std::span<const std::byte> stream);
/// Overwrites memory with the pattern.
void lay_pattern(std::span<std::byte> memory);

/// Where a layout's gaps are looked at: all of them and a guard at either end; or, of a large span, what is near a run.
class CheckedRanges {
 public:
  struct CheckedRange {
    std::int64_t from;  // offsets from the layout's base
    std::int64_t to;
  };
  /// Of a layout within [0, span). `shared_gaps`: other copies lie in the gaps, beyond a cache line around each run.
  CheckedRanges(const Layout& layout, std::int64_t span, bool shared_gaps = false);
  [[nodiscard]] std::span<const CheckedRange> list() const { return list_; }

 private:
  std::vector<CheckedRange> list_;
};

inline constexpr std::int64_t kGuard = 4096;      // bytes around a layout, or around a run, which nobody may touch
inline constexpr std::int64_t kSharedGuard = 64;  // the same where copies share their gaps

/// Overwrites the bytes of the layout with the pattern: the state before a transfer.
void poison(const Layout& layout, std::byte* base);
/// Nothing if the layout at `base` holds `stream` and the windows around it the pattern; else a sentence that names the
/// first wrong byte of the stream, or of the gaps. Afterwards all of it holds the pattern. No transfer into it may be
/// under way.
[[nodiscard]] std::string examine(const Layout& layout, std::byte* base, const CheckedRanges& windows, std::span<const std::byte> stream);

}  // namespace lacuna::measure
