#include "lacuna/copy/shuffles.hpp"

#include <algorithm>
#include <array>

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/shuffles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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
RunWindow FindWindow(std::int64_t terms, bool cold) { return cold ? window_of<true>(terms) : window_of<false>(terms); }
#else
RunWindow FindWindow(std::int64_t, bool) { return nullptr; }
#endif

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindWindow);

namespace {

using Index = std::int64_t;

constexpr Index kWidth = 64;
constexpr Index kBatchBytes = 8192;
constexpr Index kBytes = 512;  // of one permutation: its orders stay in the L1 cache beside what is moved

// Cycles, as far as they decide between ways that are right in any case; on an EPYC of 2024.
constexpr double kTermCycles = 2;
constexpr double kWindowCycles = 2;

}  // namespace

// The bytes lie within one window of the destination, in order.
void Shuffles::add_window(Byte* bytes, Index count) {
  ToWindow window{.to = bytes[0].to};
  for (Index i = 0; i < count; ++i) window.written |= std::uint64_t{1} << (bytes[i].to - window.to);
  std::sort(bytes, bytes + count, [](const Byte& a, const Byte& b) { return a.from < b.from; });
  for (Index i = 0; i < count; ++window.terms) {
    Term term{.from = bytes[i].from};
    Index last = 0;
    for (; i < count && bytes[i].from - term.from < kWidth; ++i) {
      last = bytes[i].from - term.from;
      const Index place = bytes[i].to - window.to;
      term.order[place] = static_cast<std::uint8_t>(last);
      term.wanted |= std::uint64_t{1} << place;
      term.read |= std::uint64_t{1} << last;
    }
    terms_.push_back(term);
  }
  windows_.push_back(window);
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
    const Index piece = equal_piece(loop.count, room / have);
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
  if (HWY_DYNAMIC_DISPATCH(FindWindow)(1, false) == nullptr || nest.block > kWidth / 2) return std::nullopt;
  Shuffles made;
  std::array<Byte, kBytes> bytes;
  Nest rest = nest;
  const Index have = made.take_blocks(rest, bytes);
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
  for (auto first = bytes.begin(); first != end;) {
    const auto last = std::find_if(first, end, [&](const Byte& byte) { return byte.to - first->to >= kWidth; });
    made.add_window(&*first, last - first);
    first = last;
  }
  made.follows_ = made.follows_ && !gaps;
  const double cost = kTermCycles * static_cast<double>(made.terms()) + kWindowCycles * static_cast<double>(made.windows());
  if (cost > cycles * static_cast<double>(made.bytes_)) return std::nullopt;
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
      HWY_DYNAMIC_DISPATCH(FindWindow)(window.terms, stream)(window, terms, steps, f, staged ? stage.data() : t);
      terms += window.terms;
    }
    if (staged) copy_block(t, stage.data(), count * bytes_, true);
  };
  walk_.run(from + from_, to + to_, [&](const std::byte* f, std::byte* t) { inner_.in_batches(batch, f, t, some); });
}

}  // namespace lacuna::copy
#endif
