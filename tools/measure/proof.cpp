#include "tools/measure/proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lacuna::measure {
namespace {

constexpr std::int64_t kDense = 64 << 20;  // the gaps of a span up to this are looked at whole
constexpr std::int64_t kLongRun = 4096;
constexpr std::uint64_t kPatternSeed = ~std::uint64_t{0};

// Eight bytes of noise (splitmix64's mixer).
std::uint64_t noise(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15U ^ seed * 0xd1342543de82ef95U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  return x ^ x >> 27;
}

// Bytes [from, from + out.size()) of the noise of a seed.
void make_noise(std::uint64_t seed, std::uint64_t from, std::span<std::byte> out) {
  const auto piece = [&](std::size_t at, std::size_t bytes) {
    const std::uint64_t word = noise(seed, (from + at) / 8);
    std::memcpy(out.data() + at, reinterpret_cast<const std::byte*>(&word) + (from + at) % 8, bytes);
  };
  std::size_t at = std::min<std::size_t>(out.size(), (8 - from % 8) % 8);
  if (at > 0) piece(0, at);
  for (std::uint64_t index = (from + at) / 8; at + 8 <= out.size(); at += 8, ++index) {
    const std::uint64_t word = noise(seed, index);
    std::memcpy(out.data() + at, &word, 8);
  }
  if (at < out.size()) piece(at, out.size() - at);
}

std::uint64_t address(const std::byte* at) { return reinterpret_cast<std::uint64_t>(at); }

// The first byte that differs from the pattern, or -1.
std::int64_t first_stray(const std::byte* memory, std::int64_t bytes) {
  std::array<std::byte, 4096> expected;
  for (std::int64_t at = 0; at < bytes; at += std::ssize(expected)) {
    const std::span part = std::span(expected).first(static_cast<std::size_t>(std::min(std::ssize(expected), bytes - at)));
    make_noise(kPatternSeed, address(memory + at), part);
    if (std::memcmp(memory + at, part.data(), part.size()) == 0) continue;
    return at + (std::ranges::mismatch(std::span(memory + at, part.size()), part).in1 - std::span(memory + at, part.size()).begin());
  }
  return -1;
}

void each_run(const Layout& layout, const auto& use) {
  layout::Cursor cursor(layout);
  for (std::int64_t position = 0; !cursor.done();) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    use(run, position);
    position += run.length;
  }
}

}  // namespace

std::vector<std::byte> stream_of(std::uint64_t seed, std::int64_t bytes) {
  std::vector<std::byte> stream(static_cast<std::size_t>(bytes));
  make_noise(seed, 0, stream);
  return stream;
}

void write_stream(const Layout& layout, std::byte* base, std::span<const std::byte> stream) {
  each_run(layout, [&](layout::Run run, std::int64_t position) {
    std::memcpy(base + run.offset, stream.data() + position, static_cast<std::size_t>(run.length));
  });
}

void lay_pattern(std::span<std::byte> memory) { make_noise(kPatternSeed, address(memory.data()), memory); }

CheckedRanges::CheckedRanges(const Layout& layout, std::int64_t span, bool shared_gaps) {
  const bool whole = !shared_gaps && span <= kDense;
  const std::int64_t guard = shared_gaps ? kSharedGuard : kGuard;
  std::vector<layout::Run> runs;
  each_run(layout, [&](layout::Run run, std::int64_t) { runs.push_back(run); });
  std::ranges::sort(runs);
  std::int64_t begin = -guard;  // of the window that is being made
  std::int64_t end = 0;         // of the runs so far
  for (const layout::Run& run : runs) {
    if (!whole && run.offset - end > 2 * guard) {
      list_.push_back({begin, end + guard});
      begin = run.offset - guard;
    }
    end = std::max(end, run.offset + run.length);
    if (run.length >= kLongRun) {  // its bytes are compared with the stream, and need not be looked at once more
      if (begin < run.offset) list_.push_back({begin, run.offset});
      begin = end;
    }
  }
  list_.push_back({begin, std::max(end, whole ? span : 0) + guard});
}

void poison(const Layout& layout, std::byte* base) {
  each_run(layout, [&](layout::Run run, std::int64_t) { lay_pattern({base + run.offset, static_cast<std::size_t>(run.length)}); });
}

std::string examine(const Layout& layout, std::byte* base, const CheckedRanges& windows, std::span<const std::byte> stream) {
  std::string wrong;
  std::int64_t block = 0;
  each_run(layout, [&](layout::Run run, std::int64_t position) {
    const std::span got(base + run.offset, static_cast<std::size_t>(run.length));
    const std::span expected = stream.subspan(static_cast<std::size_t>(position), got.size());
    if (wrong.empty() && std::memcmp(got.data(), expected.data(), got.size()) != 0) {
      const auto at = std::ranges::mismatch(got, expected).in1 - got.begin();
      wrong = fmt::format("byte {} of the destination (block {}, byte {} of the stream) is {:#04x}, expected {:#04x}", run.offset + at,
                          block, position + at, std::to_integer<int>(base[run.offset + at]),
                          std::to_integer<int>(stream[static_cast<std::size_t>(position + at)]));
    }
    lay_pattern(got);
    ++block;
  });
  for (const CheckedRanges::CheckedRange& window : windows.list()) {
    const std::int64_t at = first_stray(base + window.from, window.to - window.from);
    if (at < 0) continue;
    if (wrong.empty())
      wrong = fmt::format("byte {} of the destination, in a gap, was overwritten with {:#04x}", window.from + at,
                          std::to_integer<int>(base[window.from + at]));
    // The next method is not to blame for this one
    lay_pattern({base + window.from, static_cast<std::size_t>(window.to - window.from)});
  }
  return wrong;
}

}  // namespace lacuna::measure
