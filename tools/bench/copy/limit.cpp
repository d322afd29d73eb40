#include "tools/bench/copy/limit.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lacuna::bench {
namespace {

using Vector = std::uint64_t __attribute__((vector_size(64), aligned(1), may_alias));
using AlignedVector = std::uint64_t __attribute__((vector_size(64), may_alias));

constexpr std::int64_t kChunk = 64;  // lines between which reading and writing alternate

void store(std::byte* to, Vector value, Stores stores) {
#if defined(__AVX512F__)
  if (stores == Stores::streaming) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(static_cast<AlignedVector>(value)));
    return;
  }
#endif
  (void)stores;
  *reinterpret_cast<Vector*>(to) = value;
}

void store_payload(std::byte* line, const Lines::Line& at, Vector value, Stores stores) {
  if (at.bytes == 64) return store(line, value, stores);
  std::byte* to = line + at.first;
  const std::uint64_t word = value[0];
  if (at.bytes >= 8) {
    std::memcpy(to, &word, 8);
  } else if (at.bytes >= 4) {
    std::memcpy(to, &word, 4);
  } else {
    std::memcpy(to, &word, 1);
  }
}

}  // namespace

Lines lines_of(const layout::Layout& layout, std::int64_t base, Sequence sequence) {
  Lines result;
  result.payload = layout.size();
  constexpr std::int32_t unseen = -1;
  const std::int64_t lowest = (base + layout.true_lower_bound()) / 64;
  const std::int64_t highest = (base + layout.true_lower_bound() + layout.true_extent()) / 64;
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(highest - lowest + 1), unseen);  // in the result
  layout::Cursor cursor(layout);
  while (!cursor.done()) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    for (std::int64_t at = base + run.offset, end = at + run.length; at < end;) {
      const std::int64_t next = std::min((at / 64 + 1) * 64, end);
      const auto line = static_cast<std::int32_t>(at / 64);
      const auto bytes = static_cast<std::uint8_t>(next - at);
      std::int32_t& number = numbers[static_cast<std::size_t>(line - lowest)];
      if (number == unseen) {
        number = static_cast<std::int32_t>(result.lines.size());
        result.lines.push_back({line, static_cast<std::uint8_t>(at % 64), bytes});
      } else {  // the payload of a line may come in parts: together they may be all of it
        Lines::Line& known = result.lines[static_cast<std::size_t>(number)];
        if (known.first + known.bytes == at % 64) known.bytes = static_cast<std::uint8_t>(known.bytes + bytes);
      }
      at = next;
    }
  }
  if (sequence == Sequence::sorted) std::ranges::sort(result.lines, {}, &Lines::Line::line);
  for (const Lines::Line& line : result.lines) {
    if (!result.stretches.empty() && result.stretches.back().first + result.stretches.back().count == line.line) {
      ++result.stretches.back().count;
    } else {
      result.stretches.push_back({line.line, 1});
    }
  }
  return result;
}

namespace {

template <int Width>
using Part = std::uint64_t __attribute__((vector_size(Width), aligned(1), may_alias));

// The share of a line in Width >= its bytes, one over the other; the last ones within the payload.
template <int Width, bool Pack, class M, class D>
void by_line(const Lines& lines, M* memory, D* dense) {
  const auto count = static_cast<std::int64_t>(lines.lines.size());
  const std::int64_t share = std::max<std::int64_t>(lines.payload / count, 1);
  const std::int64_t last = lines.payload - Width;
  std::int64_t at = 0;
  const Lines::Line* line = lines.lines.data();
  for (const Lines::Stretch& stretch : lines.stretches) {
    M* first = memory + stretch.first * 64;
    for (std::int64_t i = 0; i < stretch.count; ++i, at += share, ++line) {
      D* place = dense + std::min(at, last);
      if constexpr (Pack) {
        *reinterpret_cast<Part<Width>*>(place) = *reinterpret_cast<const Part<Width>*>(first + i * 64);
      } else {
        const Part<Width> value = *reinterpret_cast<const Part<Width>*>(place);
        M* to = first + i * 64 + line->first;
        if (line->bytes >= Width) {
          *reinterpret_cast<Part<Width>*>(to) = value;
        } else {
          std::uint64_t word;
          std::memcpy(&word, &value, sizeof word);
          store_payload(first + i * 64, *line, Vector{word}, Stores::cached);
        }
      }
    }
  }
}

template <bool Pack, class M, class D>
void by_line_of_any_width(const Lines& lines, M* memory, D* dense) {
  const std::int64_t share = lines.payload / static_cast<std::int64_t>(lines.lines.size());
  if (lines.payload < 64 || share <= 8) return by_line<8, Pack>(lines, memory, dense);
  if (share <= 16) return by_line<16, Pack>(lines, memory, dense);
  share <= 32 ? by_line<32, Pack>(lines, memory, dense) : by_line<64, Pack>(lines, memory, dense);
}

}  // namespace

void limit_pack_by_line(const Lines& lines, const std::byte* memory, std::byte* out) { by_line_of_any_width<true>(lines, memory, out); }
void limit_unpack_by_line(const Lines& lines, std::byte* memory, const std::byte* in) { by_line_of_any_width<false>(lines, memory, in); }

void limit_pack(const Lines& lines, const std::byte* memory, std::byte* out, Stores stores) {
  const auto count = static_cast<std::int64_t>(lines.lines.size());
  // Vectors are stored to whole lines, wherever `out` begins.
  const std::int64_t head = std::min<std::int64_t>(-reinterpret_cast<std::intptr_t>(out) & 63, lines.payload);
  const std::int64_t vectors = (lines.payload - head) / 64;
  Vector sum{};
  std::int64_t written = 0;
  for (std::int64_t i = 0; i < count; i += kChunk) {
    const std::int64_t end = std::min(i + kChunk, count);
    for (std::int64_t k = i; k < end; ++k)
      sum += *reinterpret_cast<const Vector*>(memory + std::int64_t{lines.lines[static_cast<std::size_t>(k)].line} * 64);
    for (const std::int64_t upto = vectors * end / count; written < upto; ++written) store(out + head + written * 64, sum, stores);
  }
  const std::int64_t done = head + vectors * 64;
  std::memcpy(out, &sum, static_cast<std::size_t>(head));
  std::memcpy(out + done, &sum, static_cast<std::size_t>(lines.payload - done));
#if defined(__x86_64__)
  if (stores == Stores::streaming) _mm_sfence();
#endif
}

void limit_unpack(const Lines& lines, std::byte* memory, const std::byte* in, Stores stores) {
  const auto count = static_cast<std::int64_t>(lines.lines.size());
  const std::int64_t vectors = lines.payload / 64;
  Vector sum{};
  std::int64_t read = 0;
  for (std::int64_t i = 0; i < count; i += kChunk) {
    const std::int64_t end = std::min(i + kChunk, count);
    for (const std::int64_t upto = vectors * end / count; read < upto; ++read) {
      Vector loaded;
      std::memcpy(&loaded, in + read * 64, sizeof loaded);
      sum += loaded;
    }
    for (std::int64_t k = i; k < end; ++k) {
      const Lines::Line& line = lines.lines[static_cast<std::size_t>(k)];
      store_payload(memory + std::int64_t{line.line} * 64, line, sum, stores);
    }
  }
#if defined(__x86_64__)
  if (stores == Stores::streaming) _mm_sfence();
#endif
}

void limit_transpack(const Lines& from, const std::byte* source, const Lines& to, std::byte* target) {
  const auto reads = static_cast<std::int64_t>(from.lines.size());
  const auto writes = static_cast<std::int64_t>(to.lines.size());
  Vector sum{};
  std::int64_t written = 0;
  for (std::int64_t i = 0; i < reads; i += kChunk) {
    const std::int64_t end = std::min(i + kChunk, reads);
    for (std::int64_t k = i; k < end; ++k)
      sum += *reinterpret_cast<const Vector*>(source + std::int64_t{from.lines[static_cast<std::size_t>(k)].line} * 64);
    for (const std::int64_t upto = writes * end / reads; written < upto; ++written) {
      const Lines::Line& line = to.lines[static_cast<std::size_t>(written)];
      store_payload(target + std::int64_t{line.line} * 64, line, sum, Stores::cached);
    }
  }
}

#if defined(__x86_64__)
void evict(const Lines& lines, const std::byte* memory) {
  for (const Lines::Line& line : lines.lines) _mm_clflush(memory + std::int64_t{line.line} * 64);
  _mm_mfence();
}
void evict(const std::byte* memory, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += 64) _mm_clflush(memory + at);
  _mm_mfence();
}
#else
void evict(const Lines&, const std::byte*) {}
void evict(const std::byte*, std::int64_t) {}
#endif

// One line in each of 4096 pages: more than the second-level TLB of any CPU that we know holds.
void evict_translations() {
  constexpr std::int64_t pages = 4096;
  static std::vector<std::byte> memory(pages * 4096);
  for (std::int64_t i = 0; i < pages; ++i) {
    std::byte& byte = memory[static_cast<std::size_t>(i * 4096 + i % 64 * 64)];
    byte = static_cast<std::byte>(static_cast<int>(byte) + 1);
  }
}

}  // namespace lacuna::bench
