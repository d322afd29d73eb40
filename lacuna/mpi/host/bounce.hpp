// Buffers for bytes in between: what is packed for the host, and what it may receive for a type with gaps.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "lacuna/mpi/host/mutex.hpp"

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

/// Keeps small ones, and a few large ones. Both are bounded by bytes. Where the large ones would be too many, the
/// largest are given up for the one that comes back.
class Bounces {
 public:
  /// Without data: there is no memory for it.
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
        if (made.size_class_ > kSmall) kept_bytes_ -= std::size_t{1} << made.size_class_;
        return made;
      }
    }
    made.memory_.reset(new (std::nothrow) std::byte[std::size_t{1} << made.size_class_]);
    if (made.memory_ == nullptr) {  // what is kept for others is given up
      drop();
      made.memory_.reset(new (std::nothrow) std::byte[std::size_t{1} << made.size_class_]);
    }
    return made;
  }
  /// Gives up all that are kept.
  void drop() {
    const std::scoped_lock lock(mutex_);
    for (auto& kept : kept_) kept.clear();
    kept_bytes_ = 0;
  }

 private:
  friend class Bounce;
  // A program may have thousands of short receives at once. Each has a buffer, so a buffer is no longer than it has to
  // be.
  static constexpr std::int64_t kLeast = 64;
  static constexpr std::size_t kSmall = 16;             // of 64 KiB or less many are kept,
  static constexpr std::size_t kMostOfSmall = 4 << 20;  // bytes of each size;
  static constexpr std::size_t kFewKept = 4;            // of others so many of each size,
  static constexpr std::size_t kMostKept = 64 << 20;    // and so many bytes of all together
  void give_back(std::size_t size_class, std::unique_ptr<std::byte[]> memory) noexcept {
    const std::scoped_lock lock(mutex_);
    auto& kept = kept_.at(size_class);
    const std::size_t bytes = std::size_t{1} << size_class;
    if (kept.size() >= (size_class <= kSmall ? kMostOfSmall / bytes : kFewKept)) return;
    if (kept.size() == kept.capacity() && !make_room(kept)) return;
    if (size_class > kSmall) {
      if (bytes > kMostKept) return;
      drop_until(kMostKept - bytes);
      kept_bytes_ += bytes;
    }
    kept.push_back(std::move(memory));
  }
  // False: there is no memory for it.
  static bool make_room(std::vector<std::unique_ptr<std::byte[]>>& kept) noexcept {
    try {
      kept.reserve(std::max<std::size_t>(2 * kept.size(), 16));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  // The largest go first.
  void drop_until(std::size_t bytes) {
    for (std::size_t size_class = kept_.size() - 1; size_class > kSmall && kept_bytes_ > bytes;) {
      if (kept_[size_class].empty()) {
        --size_class;
        continue;
      }
      kept_[size_class].pop_back();
      kept_bytes_ -= std::size_t{1} << size_class;
    }
  }
  Mutex mutex_;
  std::size_t kept_bytes_ = 0;
  std::array<std::vector<std::unique_ptr<std::byte[]>>, 64> kept_;
};

inline Bounce::~Bounce() {
  if (memory_ != nullptr) home_->give_back(size_class_, std::move(memory_));
}

}  // namespace lacuna::mpi
