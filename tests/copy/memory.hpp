// Memory in which no access beyond a layout's bytes goes unseen: allocations as large as what they hold, for
// AddressSanitizer; pages that fault before or behind, for what it does not instrument (masked loads and stores); zones
// around that are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/random.hpp"

namespace lacuna::copy_test {

using support::Random;
using Bytes = std::vector<std::byte>;

void fill(std::span<std::byte> bytes, Random& random);

/// Read-write pages between two that fault.
class Arena {
 public:
  explicit Arena(std::size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::span<std::byte> pages() const { return pages_; }

 private:
  std::span<std::byte> pages_;
};

/// Offsets [low, low + bytes), filled at random, placed at random.
class Memory {
 public:
  Memory(std::int64_t low, std::int64_t bytes, Random& random);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Where offset 0 is, or would be.
  [[nodiscard]] std::byte* base() const { return data_ - low_; }
  [[nodiscard]] std::byte* data() const { return data_; }
  /// All bytes, and zones around if there are any.
  [[nodiscard]] std::span<std::byte> all() const { return all_; }
  [[nodiscard]] Bytes copy() const { return {all_.begin(), all_.end()}; }
  /// Where offset 0 is in a copy.
  [[nodiscard]] std::byte* base(Bytes& copy) const { return copy.data() + (data_ - all_.data()) - low_; }
  [[nodiscard]] std::string text() const;

 private:
  std::unique_ptr<std::byte[]> heap_;
  std::unique_ptr<Arena> arena_;
  std::span<std::byte> all_;
  std::byte* data_ = nullptr;
  std::int64_t low_;
  const char* placed_ = "";
};

/// What is being tested, printed should the process die of it.
class Announced {
 public:
  explicit Announced(std::string text);
  ~Announced();
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;
};

}  // namespace lacuna::copy_test
