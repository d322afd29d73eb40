#include "lacuna/copy/shuffles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/shuffles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/copy/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {

using RunWindow = void (*)(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* from, std::byte* to);

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
// Highway 1.0 has no permutation of bytes across a vector, hence the intrinsics. The orders of up to `Terms` terms stay
// in registers.
template <bool Cold>
__m512i load_term(__mmask64 read, const std::byte* from) {
  return Cold && in_one_page(from, 64) ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi8(read, from);
}

template <int Terms, bool Cold>
void move_window(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* HWY_RESTRICT from,
                 std::byte* HWY_RESTRICT to) {
  __m512i order[Terms];
  __mmask64 read[Terms];
  __mmask64 wanted[Terms];
  const std::byte* at[Terms];
#pragma GCC unroll 8
  for (int k = 0; k < Terms; ++k) {
    order[k] = _mm512_load_si512(terms[k].order);
    read[k] = terms[k].read;
    wanted[k] = terms[k].wanted;
    at[k] = from + terms[k].from;
  }
  const __mmask64 written = window.written;
  to += window.to;
  std::int64_t shift = 0;
  for (std::int64_t i = 0; i < steps.count; ++i, shift += steps.from, to += steps.to) {
    __m512i all = _mm512_maskz_permutexvar_epi8(wanted[0], order[0], load_term<Cold>(read[0], at[0] + shift));
#pragma GCC unroll 8
    for (int k = 1; k < Terms; ++k)
      all = _mm512_or_si512(all, _mm512_maskz_permutexvar_epi8(wanted[k], order[k], load_term<Cold>(read[k], at[k] + shift)));
    _mm512_mask_storeu_epi8(to, written, all);
  }
}
template <bool Cold>
void move_any_window(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* HWY_RESTRICT from,
                     std::byte* HWY_RESTRICT to) {
  for (std::int64_t i = 0; i < steps.count; ++i, from += steps.from, to += steps.to) {
    __m512i all = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < window.terms; ++k) {
      const Term& t = terms[k];
      const __m512i part = load_term<Cold>(t.read, from + t.from);
      all = _mm512_or_si512(all, _mm512_maskz_permutexvar_epi8(t.wanted, _mm512_load_si512(t.order), part));
    }
    _mm512_mask_storeu_epi8(to + window.to, window.written, all);
  }
}
template <bool Cold>
RunWindow window_of(std::int64_t terms) {
  constexpr RunWindow few[] = {&move_window<1, Cold>, &move_window<2, Cold>, &move_window<3, Cold>,
                               &move_window<4, Cold>, &move_window<5, Cold>, &move_window<6, Cold>};
  return terms <= 6 ? few[terms - 1] : &move_any_window<Cold>;
}
RunWindow FindWindow(const ToWindow& window, bool cold) { return cold ? window_of<true>(window.terms) : window_of<false>(window.terms); }
constexpr Windowing kWindowing{.width = 64, .most = 512, .masked = true, .window_cycles = 2, .term_cycles = 2, .many_cycles = 2};
#elif LACUNA_LANES
template <bool Whole>
HWY_INLINE void store_window(Lane v, std::byte* to, std::int64_t bytes) {
  if constexpr (Whole) {
    std::memcpy(to, &v, sizeof v);
  } else {
    store_words(v, to, bytes);
  }
}

// Loads that may reach into a page without a wanted byte, and others.
struct Careful {
  static Lane load(const std::byte* from, std::int64_t bytes) { return load_near_page_end(from, bytes); }
};
struct Free {
  static Lane load(const std::byte* from, std::int64_t) { return load_lane(from); }
};

// The orders of `Terms` terms stay in registers.
template <int Terms, bool Whole>
struct Lanes {
  template <class Load>
  static void run(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* HWY_RESTRICT from,
                  std::byte* HWY_RESTRICT to) {
    Lane order[Terms];
    const std::byte* at[Terms];
    std::int64_t read[Terms];
#pragma GCC unroll 8
    for (int k = 0; k < Terms; ++k) {
      order[k] = load_lane(terms[k].order);
      at[k] = from + terms[k].from;
      read[k] = std::bit_width(terms[k].read);
    }
    const std::int64_t bytes = std::popcount(window.written), from_step = steps.from, to_step = steps.to;
    to += window.to;
    std::int64_t shift = 0;
#pragma GCC unroll 2
    for (std::int64_t i = steps.count; i > 0; --i, shift += from_step, to += to_step) {
      Lane all = permuted(Load::load(at[0] + shift, read[0]), order[0]);
#pragma GCC unroll 8
      for (int k = 1; k < Terms; ++k) all = united(all, permuted(Load::load(at[k] + shift, read[k]), order[k]));
      store_window<Whole>(all, to, bytes);
    }
  }
};
// Any number of them.
template <bool Whole>
struct Lanes<0, Whole> {
  template <class Load>
  static void run(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* HWY_RESTRICT from,
                  std::byte* HWY_RESTRICT to) {
    const std::int64_t bytes = std::popcount(window.written), count = window.terms;
    to += window.to;
    for (std::int64_t i = 0; i < steps.count; ++i, from += steps.from, to += steps.to) {
      const auto term = [&](const Term& t) { return permuted(Load::load(from + t.from, std::bit_width(t.read)), load_lane(t.order)); };
      Lane all = term(terms[0]);
      for (std::int64_t k = 1; k < count; ++k) all = united(all, term(terms[k]));
      store_window<Whole>(all, to, bytes);
    }
  }
};

// A page behind a lane holds the first byte of a later one, or, where they go down, of an earlier one.
template <int Terms, bool Whole>
void move_window(const ToWindow& window, const Term* terms, const Steps& steps, const std::byte* from, std::byte* to) {
  const std::int64_t near_end = steps.count - whole_vectors(steps.count, std::abs(steps.from), sizeof(Lane));
  const std::int64_t first = std::min(steps.from < 0 ? near_end : 0, steps.count);
  const std::int64_t last = std::max(steps.from < 0 ? steps.count : steps.count - near_end, first);
  const auto some = [&]<class Load>(std::int64_t begin, std::int64_t end, Load) {
    Lanes<Terms, Whole>::template run<Load>(window, terms, {end - begin, steps.from, steps.to}, from + begin * steps.from,
                                            to + begin * steps.to);
  };
  some(0, first, Careful());
  some(first, last, Free());
  some(last, steps.count, Careful());
}
template <bool Whole>
RunWindow window_of(std::int64_t terms) {
  constexpr RunWindow few[] = {&move_window<1, Whole>, &move_window<2, Whole>, &move_window<3, Whole>, &move_window<4, Whole>,
                               &move_window<5, Whole>, &move_window<6, Whole>, &move_window<7, Whole>, &move_window<8, Whole>};
  return terms <= kFewTerms ? few[terms - 1] : &move_window<0, Whole>;
}
RunWindow FindWindow(const ToWindow& window, bool) {
  return std::popcount(window.written) == sizeof(Lane) ? window_of<true>(window.terms) : window_of<false>(window.terms);
}
constexpr Windowing kWindowing{.width = 16, .most = 128, .masked = false, .window_cycles = 2.5, .term_cycles = 0.85, .many_cycles = 2.8};
#else
RunWindow FindWindow(const ToWindow&, bool) { return nullptr; }
constexpr Windowing kWindowing{};
#endif

Windowing FindWindowing() { return kWindowing; }

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindWindow);
HWY_EXPORT(FindWindowing);

namespace {

using Index = std::int64_t;

constexpr Index kBatchBytes = 8192;
constexpr Index kMostBytes = 512;
constexpr Index kWidest = 64;

}  // namespace

// The bytes lie within one window of the destination, in order.
void Shuffles::add_window(std::span<const Byte> window_bytes) {
  std::array<Byte, kWidest> bytes;
  std::ranges::copy(window_bytes, bytes.begin());
  const auto count = std::ssize(window_bytes);
  ToWindow window{.to = bytes[0].to};
  // Without masked stores a short window leaves as two words that overlap.
  const bool words = !windowing_.masked && count < windowing_.width;
  const auto word = static_cast<Index>(std::bit_floor(static_cast<std::size_t>(count)));
  std::sort(bytes.begin(), bytes.begin() + count, [](const Byte& a, const Byte& b) { return a.from < b.from; });
  for (Index i = 0; i < count; ++window.terms) {
    Term term{.from = bytes[static_cast<std::size_t>(i)].from};
    std::ranges::fill(term.order, Term::kNone);
    for (; i < count && bytes[static_cast<std::size_t>(i)].from - term.from < windowing_.width; ++i) {
      const Byte& byte = bytes[static_cast<std::size_t>(i)];
      const Index source = byte.from - term.from;
      const Index place = byte.to - window.to;
      if (!words || place < word) term.order[place] = static_cast<std::uint8_t>(source);
      if (words && place >= count - word) term.order[word + place - (count - word)] = static_cast<std::uint8_t>(source);
      term.wanted |= std::uint64_t{1} << place;
      term.read |= std::uint64_t{1} << source;
    }
    window.written |= term.wanted;
    terms_.push_back(term);
  }
  windows_.push_back(window);
  const double term = window.terms <= kFewTerms ? windowing_.term_cycles : windowing_.many_cycles;
  cycles_ += (words ? 2 : 1) * windowing_.window_cycles + term * static_cast<double>(window.terms);
}

// Cuts bytes in the order of the destination into windows: with masks wherever they lie, else of what has no gap, the
// last window of which moves some bytes again. False once they take longer than `most_cycles`.
bool Shuffles::add_windows(std::span<const Byte> bytes, double most_cycles) {
  while (!bytes.empty()) {
    const auto fits = [&](std::size_t i) {
      return windowing_.masked ? bytes[i].to - bytes[0].to < windowing_.width : bytes[i].to == bytes[i - 1].to + 1;
    };
    std::size_t count = 1;
    while (count < bytes.size() && fits(count)) ++count;
    const auto width = static_cast<std::size_t>(windowing_.width);
    for (std::size_t at = 0; at < count; at += width) {
      const std::size_t first = windowing_.masked || count < width ? at : std::min(at, count - width);
      add_window(bytes.subspan(first, std::min(width, count - first)));
      if (cycles_ > most_cycles) return false;
    }
    bytes = bytes.subspan(count);
  }
  return true;
}

// Entries of `bytes` each of a loop that is taken in pieces. Without masks no more than fill whole windows: the source
// is read once for each window of a permutation.
Index Shuffles::piece_of(Index count, Index bytes, Index most) const {
  if (windowing_.masked || count <= most) return equal_piece(count, most);
  return std::min(most, windowing_.width / std::gcd(bytes, windowing_.width));
}

// The blocks of the loops along which the destination is densest, as many as there is room for. What is left of the
// last of them goes around. Answers how many blocks.
Index Shuffles::take_blocks(Nest& rest, std::span<Byte> blocks) {
  const Index room = std::ssize(blocks) / rest.block;
  Index have = 1;
  blocks[0] = {0, 0};
  while (rest.depth > 0 && have * 2 <= room) {
    const std::size_t i = densest(rest, &Loop::to);
    const Loop loop = upwards(rest.loops[i], &Loop::to, from_, to_);
    rest.remove(i);
    const Index piece = piece_of(loop.count, have * rest.block, room / have);
    for (Index n = 1; n < piece; ++n) {
      for (Index j = 0; j < have; ++j) {
        const Byte& block = blocks[static_cast<std::size_t>(j)];
        blocks[static_cast<std::size_t>(n * have + j)] = {block.to + n * loop.to, block.from + n * loop.from};
      }
    }
    have *= piece;
    if (piece < loop.count) {
      add_around(loop, piece, have * rest.block);
      break;
    }
  }
  return have;
}

// A loop around, `piece` entries at a time. If what these write follows one another, some of them become the inner
// loop.
void Shuffles::add_around(const Loop& loop, Index piece, Index bytes) {
  if (follows_ || loop.to * piece != bytes) return walk_.add(Around(loop, piece));
  const Index batch = std::min(std::max<Index>(1, kBatchBytes / bytes), loop.count / piece);
  follows_ = batch * bytes >= kBatchBytes / 2;
  if (!follows_) return walk_.add(Around(loop, piece));
  walk_.add(Around(loop, batch * piece));
  inner_ = Around({batch * piece, loop.from, loop.to}, piece);
}

std::optional<Shuffles> Shuffles::of(const Nest& nest, double cycles) {
  Shuffles made;
  made.windowing_ = HWY_DYNAMIC_DISPATCH(FindWindowing)();
  if (nest.block > made.windowing_.width / 2) return std::nullopt;
  std::array<Byte, kMostBytes> bytes;
  Nest rest = nest;
  const Index have = made.take_blocks(rest, std::span(bytes).first(static_cast<std::size_t>(made.windowing_.most)));
  made.bytes_ = have * nest.block;
  for (std::size_t i = 0; i < rest.depth; ++i) made.add_around(rest.loops[i], 1, made.bytes_);
  if (!made.follows_) made.inner_ = made.walk_.take_innermost();
  // From blocks to bytes.
  for (Index j = have; j-- > 0;) {
    const Byte block = bytes[static_cast<std::size_t>(j)];
    for (Index b = 0; b < nest.block; ++b) bytes[static_cast<std::size_t>(j * nest.block + b)] = {block.to + b, block.from + b};
  }
  const auto end = bytes.begin() + made.bytes_;
  const auto by_place = [](const Byte& a, const Byte& b) { return a.to < b.to; };
  if (!std::is_sorted(bytes.begin(), end, by_place)) std::sort(bytes.begin(), end, by_place);
  const bool gaps = (end - 1)->to - bytes[0].to >= made.bytes_;
  made.follows_ = made.follows_ && !gaps;
  if (!made.add_windows({bytes.begin(), end}, cycles * static_cast<double>(made.bytes_))) return std::nullopt;
  return made;
}

// As many at a time as stay in the L1 cache from window to window.
void Shuffles::move(const std::byte* from, std::byte* to, bool stream) const {
  const Index batch = std::max<Index>(1, kBatchBytes / bytes_);
  alignas(kLine) std::array<std::byte, kBatchBytes> stage;
  const bool staged = stream && follows_;
  const auto some = [&](Index count, const std::byte* f, std::byte* t) {
    const Steps steps{count, inner_.from, inner_.to};
    const Term* terms = terms_.data();
    for (const ToWindow& window : windows_) {
      HWY_DYNAMIC_DISPATCH(FindWindow)(window, stream)(window, terms, steps, f, staged ? stage.data() : t);
      terms += window.terms;
    }
    if (staged) copy_block(t, stage.data(), count * bytes_, true);
  };
  walk_.run(from + from_, to + to_, [&](const std::byte* f, std::byte* t) { inner_.in_batches(batch, f, t, some); });
}

}  // namespace lacuna::copy
#endif
