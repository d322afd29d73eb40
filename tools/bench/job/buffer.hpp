// Memory of one side of a case, from malloc() as a program's arrays are, with a pattern around and under its layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/bench/copy/cases.hpp"

namespace lacuna::bench {

class Buffer {
 public:
  explicit Buffer(const Side& side);
  [[nodiscard]] std::byte* base() const { return memory_.get() + base_; }

  /// The pattern of `seed`, on all pages that the layout touches; the others stay as malloc() gave them.
  void fill(std::uint64_t seed);
  /// The layout's bytes, packed.
  [[nodiscard]] std::vector<std::byte> data() const;
  /// The pattern again where data landed.
  void clear();
  /// Whether the layout holds these bytes and its gaps the pattern that they were filled with. Then the pattern is
  /// everywhere again.
  bool holds(const std::vector<std::byte>& data);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  layout::Layout layout_;
  std::int64_t base_;
  std::unique_ptr<std::byte[], Free> memory_;
  std::vector<std::int64_t> pages_;
  std::uint64_t seed_ = 0;
  std::vector<std::byte> pattern_;  // under the layout, packed
};

}  // namespace lacuna::bench
