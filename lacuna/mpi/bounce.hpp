// Buffers for bytes in between: what is packed for the host, and what it may receive for a type with gaps.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lacuna/mpi/mutex.hpp"

namespace lacuna::mpi {

class Bounces;

/// One of them; it goes back on destruction.
class Bounce {
 public:
  Bounce() = default;
  Bounce(Bounce&& other) noexcept { swap(other); }
  Bounce& operator=(Bounce&& other) noexcept {
    swap(other);
    return *this;
  }
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;
  ~Bounce();
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  friend class Bounces;
  void swap(Bounce& other) noexcept {
    std::swap(home_, other.home_);
    std::swap(size_class_, other.size_class_);
    std::swap(memory_, other.memory_);
  }
  Bounces* home_ = nullptr;
  std::size_t size_class_ = 0;
  std::unique_ptr<std::byte[]> memory_;
};

/// Keeps small ones, and a few large ones: whoever receives into a type with gaps needs address space for all of it, but memory only for what comes
/// through the host, which is little.
class Bounces {
 public:
  Bounce take(std::int64_t bytes) {
    Bounce made;
    made.home_ = this;
    made.size_class_ = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, kLeast) - 1)));
    {
      const std::scoped_lock lock(mutex_);
      auto& kept = kept_.at(made.size_class_);
      if (!kept.empty()) {
        made.memory_ = std::move(kept.back());
        kept.pop_back();
        return made;
      }
    }
    made.memory_ = std::make_unique_for_overwrite<std::byte[]>(std::size_t{1} << made.size_class_);
    return made;
  }

 private:
  friend class Bounce;
  static constexpr std::int64_t kLeast = 2048;
  static constexpr std::size_t kSmall = 16;  // of 64 KiB or less many are kept,
  static constexpr std::size_t kManyKept = 64, kFewKept = 4;
  void give_back(std::size_t size_class, std::unique_ptr<std::byte[]> memory) {
    const std::scoped_lock lock(mutex_);
    auto& kept = kept_.at(size_class);
    if (kept.size() < (size_class <= kSmall ? kManyKept : kFewKept)) kept.push_back(std::move(memory));
  }
  Mutex mutex_;
  std::array<std::vector<std::unique_ptr<std::byte[]>>, 64> kept_;
};

inline Bounce::~Bounce() {
  if (memory_ != nullptr) home_->give_back(size_class_, std::move(memory_));
}

}  // namespace lacuna::mpi
