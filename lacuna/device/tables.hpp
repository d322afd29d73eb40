// tables: what lists of a program become on the device. It hides how narrow they are, and that one list is there once.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "lacuna/device/kernel/parts.hpp"
#include "lacuna/device/nest.hpp"

namespace lacuna::device {

class Tables {
 public:
  /// Numbers, divided, as items of T. The answer is where they begin, in units of 8 bytes.
  template <class T>
  std::uint32_t put(std::span<const std::int64_t> numbers, std::int64_t divisor) {
    const std::size_t at = words.size();
    words.resize(at + (numbers.size() * sizeof(T) + 7) / 8);
    auto* items = reinterpret_cast<std::byte*>(words.data() + at);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const T item = static_cast<T>(numbers[i] / divisor);
      std::memcpy(items + i * sizeof(T), &item, sizeof item);
    }
    return static_cast<std::uint32_t>(at);
  }
  /// One side of a loop, all of whose places `word` divides. A list that was put before is not put again, until
  /// forget().
  std::tuple<kernel::Places, std::uint32_t, std::int64_t> put_side(const LoopSide& side, std::int64_t count, std::int64_t word);
  /// For each 32 units: the block of the first one, less the blocks that its own bit counts, and where blocks begin.
  std::uint32_t put_marks(const std::vector<std::int64_t>& starts);
  /// Where unit 0 would be if all units were one run with each block's.
  std::pair<kernel::Places, std::uint32_t> put_places(const std::vector<std::int64_t>& places, const std::vector<std::int64_t>& starts,
                                                      std::int64_t word);
  /// Lists that were put may go, and others may come where they were.
  void forget() { known_.clear(); }

  std::vector<std::uint64_t> words;

 private:
  std::map<std::tuple<const std::int64_t*, std::int64_t, std::int64_t>, std::pair<kernel::Places, std::uint32_t>> known_;
};

}  // namespace lacuna::device
