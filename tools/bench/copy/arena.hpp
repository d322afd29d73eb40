// Memory of one side of a case: mapped, touched where its layout is, and compared there page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/bench/copy/limit.hpp"

namespace lacuna::bench {

class Arena {
 public:
  Arena(std::int64_t bytes, std::int64_t base);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* memory() const { return memory_; }
  [[nodiscard]] std::byte* base() const { return memory_ + base_; }

  /// Fills the pages that the layout touches; only these are looked at later.
  void fill(const Lines& lines, std::uint64_t seed);
  [[nodiscard]] std::vector<std::byte> snapshot() const;
  void restore(const std::vector<std::byte>& snapshot);

 private:
  std::byte* memory_;
  std::int64_t bytes_;
  std::int64_t base_;
  std::vector<std::int64_t> pages_;
};

}  // namespace lacuna::bench
