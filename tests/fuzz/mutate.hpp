// mutate: inputs that are nearly valid. Random bytes reach nothing behind a first check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzer.hpp"

namespace lacuna::fuzz {

/// 0, 1, powers of two and the limits of integers, each with its neighbors; or any number.
[[nodiscard]] std::uint64_t odd_number(Random& random);

/// One of the seeds with some bits turned, cut, longer, with numbers at their limits, or spliced with another.
[[nodiscard]] Bytes mutated(Random& random, const std::vector<Bytes>& seeds);
/// The same of text whose words, numbers and brackets mean something, such as JSON.
[[nodiscard]] Bytes mutated_text(Random& random, const std::vector<Bytes>& seeds);

/// Changes of bytes that are known only while a program runs, such as an introduction with a nonce; as text:
/// "cut 20", "grow 3", "flip 17 5", "set 24 8 18446744073709551615", by semicolons.
[[nodiscard]] Bytes draw_edits(Random& random, std::int64_t bytes);
void edit(const Bytes& edits, std::vector<std::byte>& bytes);

[[nodiscard]] inline std::span<const std::byte> as_bytes(const Bytes& input) { return std::as_bytes(std::span(input)); }
[[nodiscard]] inline Bytes text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace lacuna::fuzz
