#include "tests/fuzz/mutate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <sstream>

namespace lacuna::fuzz {
namespace {

constexpr std::int64_t kMostChanges = 4;

std::int64_t place(Random& random, const Bytes& input) { return random.below(std::ssize(input) + 1); }

// A stretch of the input, short ones as likely as long ones.
std::pair<std::size_t, std::size_t> stretch(Random& random, const Bytes& input) {
  const std::int64_t at = place(random, input);
  return {static_cast<std::size_t>(at), static_cast<std::size_t>(random.scaled(std::ssize(input) - at))};
}

void splice(Random& random, const std::vector<Bytes>& seeds, Bytes& input) {
  const Bytes& other = random.pick(seeds);
  input.resize(static_cast<std::size_t>(place(random, input)));
  input += other.substr(static_cast<std::size_t>(place(random, other)));
}

void change(Random& random, const std::vector<Bytes>& seeds, Bytes& input) {
  const std::int64_t bytes = std::ssize(input);
  const auto any = [&] { return static_cast<std::size_t>(random.below(bytes)); };
  const std::int64_t kind = random.below(9);
  if (bytes == 0 || kind == 0) {
    for (std::int64_t more = random.between(1, 40); more > 0; --more) input.push_back(static_cast<char>(random.next()));
    return;
  }
  switch (kind) {
    case 1: input.resize(any()); break;
    case 2: splice(random, seeds, input); break;
    case 3: {
      const auto [at, length] = stretch(random, input);
      input.erase(at, length);
      break;
    }
    case 4: {
      const auto [at, length] = stretch(random, input);
      input.insert(at, input.substr(at, length));
      break;
    }
    case 5:
    case 6: {
      const std::uint64_t number = odd_number(random);
      const auto width = std::min<std::int64_t>(std::int64_t{1} << random.below(4), bytes);
      // Mostly where a field would begin
      std::int64_t at = random.below(bytes - width + 1);
      if (random.one_in(2)) at -= at % width;
      std::memcpy(input.data() + at, &number, static_cast<std::size_t>(width));
      break;
    }
    case 7: input[any()] = static_cast<char>(random.next()); break;
    default: input[any()] ^= static_cast<char>(1 << random.below(8)); break;
  }
}

// Where a word, a number, a string or a sign begins and ends.
std::pair<std::size_t, std::size_t> token(Random& random, const Bytes& input) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_'; };
  auto begin = static_cast<std::size_t>(random.below(std::ssize(input)));
  auto end = begin + 1;
  if (!is_word(input[begin])) return {begin, 1};
  while (begin > 0 && is_word(input[begin - 1])) --begin;
  while (end < input.size() && is_word(input[end])) ++end;
  return {begin, end - begin};
}

std::string odd_word(Random& random) {
  static const std::vector<std::string> words{"null",  "true",   "[]",  "{}",     "\"\"",     "\"x\"",       "-0",   "0.5", "1e308",
                                              "1e999", "-1e999", "NaN", "1e-320", "[[[[[[[[", "\"\\u0000\"", "\xff", ","};
  if (random.one_in(2)) return random.pick(words);
  const std::uint64_t number = odd_number(random);
  return random.one_in(2) ? fmt::format("{}", number) : fmt::format("{}", static_cast<std::int64_t>(number));
}

void change_text(Random& random, const std::vector<Bytes>& seeds, Bytes& input) {
  if (input.empty() || random.one_in(5)) return change(random, seeds, input);
  const auto [at, length] = token(random, input);
  const auto [other_at, other_length] = token(random, input);
  switch (random.below(5)) {
    case 0: input.erase(at, length); break;
    case 1: input.insert(at, input.substr(other_at, other_length)); break;
    case 2: input.replace(at, length, input.substr(other_at, other_length)); break;
    default: input.replace(at, length, odd_word(random)); break;
  }
}

template <class Change>
Bytes changed(Random& random, const std::vector<Bytes>& seeds, const Change& change) {
  Bytes input = random.pick(seeds);
  for (std::int64_t left = random.between(1, kMostChanges); left > 0; --left) change(random, seeds, input);
  return input;
}

}  // namespace

std::uint64_t odd_number(Random& random) {
  switch (random.below(4)) {
    case 0: return static_cast<std::uint64_t>(random.between(-3, 20));
    case 1: return (std::uint64_t{1} << random.below(64)) + static_cast<std::uint64_t>(random.between(-2, 2));
    case 2:
      return static_cast<std::uint64_t>(random.one_in(2) ? std::numeric_limits<std::int64_t>::max()
                                                         : std::numeric_limits<std::int64_t>::min());
    default: return random.next() >> random.below(64);
  }
}

Bytes mutated(Random& random, const std::vector<Bytes>& seeds) { return changed(random, seeds, change); }
Bytes mutated_text(Random& random, const std::vector<Bytes>& seeds) { return changed(random, seeds, change_text); }

Bytes draw_edits(Random& random, std::int64_t bytes) {
  Bytes edits;
  for (std::int64_t left = random.scaled(kMostChanges); left > 0; --left) {
    if (!edits.empty()) edits += ';';
    const auto width = std::int64_t{1} << random.below(4);
    switch (random.below(8)) {
      case 0: edits += fmt::format("cut {}", random.below(bytes)); break;
      case 1: edits += fmt::format("grow {}", random.scaled(4 * bytes)); break;
      case 2:
      case 3: edits += fmt::format("flip {} {}", random.below(bytes), random.below(8)); break;
      default: edits += fmt::format("set {} {} {}", random.below((bytes + width - 1) / width) * width, width, odd_number(random)); break;
    }
  }
  return edits;
}

void edit(const Bytes& edits, std::vector<std::byte>& bytes) {
  std::istringstream all(edits);
  for (std::string one; std::getline(all, one, ';');) {
    std::istringstream words(one);
    std::string kind;
    std::uint64_t at = 0, width = 0, value = 0;
    words >> kind >> at >> width >> value;
    if (kind == "cut") bytes.resize(std::min<std::size_t>(at, bytes.size()));
    if (kind == "grow") bytes.resize(bytes.size() + at);
    if (at >= bytes.size()) continue;
    if (kind == "flip") bytes[at] ^= static_cast<std::byte>(1U << (width % 8));
    if (kind == "set") std::memcpy(bytes.data() + at, &value, std::min({width, std::uint64_t{8}, bytes.size() - at}));
  }
}

Bytes draw_seed(Random& random) { return std::to_string(random.next() >> 32); }
std::uint64_t seed_of(const Bytes& input) { return std::strtoull(input.c_str(), nullptr, 10); }

}  // namespace lacuna::fuzz
