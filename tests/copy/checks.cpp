#include "tests/copy/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/plan.hpp"

namespace lacuna::copy_test {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

struct Fragment {
  std::int64_t position;
  std::int64_t length;
};

// [0, size) cut at random places, shuffled; empty fragments among them.
std::vector<Fragment> fragments(std::int64_t size, Random& random) {
  List cuts = {0, size};
  for (std::int64_t i = random.between(1, 8); i > 0; --i) cuts.push_back(random.between(0, size));
  std::ranges::sort(cuts);
  std::vector<Fragment> out;
  for (std::size_t i = 1; i < cuts.size(); ++i) out.push_back({cuts[i - 1], cuts[i] - cuts[i - 1]});
  random.shuffle(out);
  return out;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

std::string text_of(const Recipe& recipe, std::uint64_t seed) {
  return fmt::format("seed {}: {}\n  steps: {}", seed, recipe.text, copy::describe_kernels(recipe.layout));
}

void put(std::span<const std::byte> from, std::byte* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

// Packs one fragment into memory of its own. Whatever is wrong with it, or nothing.
template <class Pack>
std::string packed(const Bytes& stream, const Fragment& f, const Memory& memory, Random& random, Pack pack) {
  const Memory piece(0, f.length, random);
  Bytes expected = piece.copy();
  put(std::span(stream).subspan(static_cast<std::size_t>(f.position), static_cast<std::size_t>(f.length)), piece.base(expected));
  pack(memory.base(), f, piece.data());
  if (same(piece.all(), expected)) return {};
  return fmt::format("pack of {} bytes at {}: {}\n  from: {}; to: {}", f.length, f.position, difference(piece.all(), expected),
                     memory.text(), piece.text());
}

Memory memory_for(const Recipe& recipe, Random& random) { return {recipe.low(), recipe.span(), random}; }

Bytes some_bytes(std::int64_t size, Random& random) {
  Bytes bytes(static_cast<std::size_t>(size));
  fill(bytes, random);
  return bytes;
}

std::string pack_is_right(const Recipe& recipe, Random& random, const Copies& copies) {
  const Memory memory = memory_for(recipe, random);
  const Bytes before = memory.copy();
  Bytes stream(static_cast<std::size_t>(recipe.size()));
  copy::reference::pack(recipe.layout, memory.base(), 0, recipe.size(), stream.data());
  const auto pack = [&](const std::byte* from, const Fragment& f, std::byte* to) {
    copies.pack(recipe.layout, from, f.position, f.length, to);
  };
  std::vector<Fragment> all = fragments(recipe.size(), random);
  all.insert(all.begin(), {0, recipe.size()});
  for (const Fragment& f : all) {
    if (std::string wrong = packed(stream, f, memory, random, pack); !wrong.empty()) return wrong;
  }
  return same(memory.all(), before) ? "" : "pack wrote to its source: " + difference(memory.all(), before);
}

// `stream` in the order of `all`, each fragment from memory of its own.
template <class Unpack>
std::string unpack_is_right(const Recipe& recipe, const std::vector<Fragment>& all, Random& random, Unpack unpack) {
  constexpr std::size_t cheap = 16 << 10;  // to be compared after each fragment
  const Bytes stream = some_bytes(recipe.size(), random);
  const Memory memory = memory_for(recipe, random);
  Bytes expected = memory.copy();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Fragment& f = all[i];
    const Memory piece(0, f.length, random);
    put(std::span(stream).subspan(static_cast<std::size_t>(f.position), static_cast<std::size_t>(f.length)), piece.data());
    unpack(memory.base(), f, piece.data());
    copy::reference::unpack(recipe.layout, memory.base(expected), f.position, f.length, piece.data());
    if ((expected.size() > cheap && i + 1 < all.size()) || same(memory.all(), expected)) continue;
    return fmt::format("unpack of {} bytes at {}, fragment {} of {}: {}\n  from: {}; to: {}", f.length, f.position, i, all.size(),
                       difference(memory.all(), expected), piece.text(), memory.text());
  }
  return {};
}

AssertionResult result(const std::string& wrong, const std::string& text) {
  if (wrong.empty()) return AssertionSuccess();
  return AssertionFailure() << wrong << "\n  " << text;
}

}  // namespace

std::string difference(std::span<const std::byte> found, std::span<const std::byte> expected) {
  if (found.size() != expected.size()) return fmt::format("{} bytes instead of {}", found.size(), expected.size());
  std::size_t first = found.size();
  std::size_t last = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  return fmt::format("{} of {} bytes differ, the first at {}, the last at {}", count, found.size(), first, last);
}

const Copies kRight{.pack = [](const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length,
                               std::byte* out) { copy::pack(layout, base, position, length, out); },
                    .unpack = [](const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length,
                                 const std::byte* in) { copy::unpack(layout, base, position, length, in); },
                    .transpack = [](const layout::Layout& from, const std::byte* source, const layout::Layout& to,
                                    std::byte* target) { return copy::transpack(from, source, to, target).has_value(); }};

AssertionResult moves(const Recipe& recipe, std::uint64_t seed, const Copies& copies) {
  const std::string text = text_of(recipe, seed);
  const Announced announced(text);
  Random random(~seed);
  if (const std::string wrong = pack_is_right(recipe, random, copies); !wrong.empty()) return result(wrong, text);
  if (!recipe.receives()) return AssertionSuccess();
  const auto unpack = [&](std::byte* to, const Fragment& f, const std::byte* from) {
    copies.unpack(recipe.layout, to, f.position, f.length, from);
  };
  const std::vector<Fragment> whole = {{0, recipe.size()}};
  if (const std::string wrong = unpack_is_right(recipe, whole, random, unpack); !wrong.empty()) return result(wrong, text);
  return result(unpack_is_right(recipe, fragments(recipe.size(), random), random, unpack), text);
}

Recipe drawn(Dice& dice) {
  dice.budget = 1 + dice.what.scaled(8 << 10);
  dice.reach = 64 << 10;
  return composition(dice, static_cast<int>(dice.what.below(4)));
}

AssertionResult check_pair(std::uint64_t seed, const Copies& copies) {
  Dice dice(seed);
  dice.receive = true;
  const Recipe source = drawn(dice);
  const Recipe target = of_size(dice, source.size());
  AssertionResult there = transpacks(source, target, seed, copies);
  return there ? transpacks(target, source, seed, copies) : there;
}

AssertionResult streams(const Recipe& recipe, std::uint64_t seed) {
  const std::string text = text_of(recipe, seed);
  const Announced announced(text);
  Random random(~seed);
  const copy::Step& step = copy::CopyPlan::of(recipe.layout).root();
  const std::int64_t at = recipe.layout.form_offset();
  const Fragment whole{0, recipe.size()};
  {
    const Memory memory = memory_for(recipe, random);
    Bytes stream(static_cast<std::size_t>(recipe.size()));
    copy::reference::pack(recipe.layout, memory.base(), 0, recipe.size(), stream.data());
    const auto pack = [&](const std::byte* from, const Fragment&, std::byte* to) { copy::pack_step(step, from + at, to, true); };
    if (const std::string wrong = packed(stream, whole, memory, random, pack); !wrong.empty()) return result("streamed " + wrong, text);
  }
  if (!recipe.receives()) return AssertionSuccess();
  const auto unpack = [&](std::byte* to, const Fragment&, const std::byte* from) { copy::unpack_step(step, to + at, from, true); };
  return result(unpack_is_right(recipe, {whole}, random, unpack), text);
}

AssertionResult transpacks(const Recipe& from, const Recipe& to, std::uint64_t seed, const Copies& copies) {
  const std::string text = text_of(from, seed) + "  to " + text_of(to, seed);
  const Announced announced(text);
  Random random(~seed);
  const Memory source = memory_for(from, random);
  const Memory target = memory_for(to, random);
  const Bytes before = source.copy();
  Bytes expected = target.copy();
  if (!copy::reference::transpack(from.layout, source.base(), to.layout, target.base(expected)) ||
      !copies.transpack(from.layout, source.base(), to.layout, target.base())) {
    return AssertionFailure() << "transpack refuses: " << text;
  }
  if (!same(source.all(), before)) return result("transpack wrote to its source: " + difference(source.all(), before), text);
  if (same(target.all(), expected)) return AssertionSuccess();
  return AssertionFailure() << "transpack: " << difference(target.all(), expected) << "\n  from: " << source.text()
                            << "; to: " << target.text() << "\n  " << text;
}

}  // namespace lacuna::copy_test
