// What Contexts of real NICs share: copies are the CPU's own, the clock is the machine's, and what is not spent waiting
// is busy. Internal to nic.
#pragma once

#include <atomic>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {

/// Zero-filled pages of this process alone, for Context::allocate. Errors: out_of_memory, invalid_argument (none).
Result<std::span<std::byte>> map_pages(std::size_t bytes);
void unmap_pages(std::span<std::byte> bytes);

class RealContext : public Context {
 public:
  void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
            copy::Caching caching) final {
    busy();
    copy::pack(layout, base, position, length, out, caching);
  }
  void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
              copy::Caching caching) final {
    busy();
    copy::unpack(layout, base, position, length, in, caching);
  }
  Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base) final {
    busy();
    return copy::transpack(src, src_base, dst, dst_base);
  }
  std::uint64_t load_flag(const std::uint64_t* flag) final { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::int64_t now() final { return base::now_ns(); }
  [[nodiscard]] std::int64_t busy_ns() final {
    busy();
    return now() - created_ - idle_total_.load(std::memory_order_relaxed);
  }

  /// This CPU does something for communication from now on. Threads that pack may say so at once.
  void busy() {
    if (idle_since_.load(std::memory_order_relaxed) == 0) return;
    const std::int64_t since = idle_since_.exchange(0, std::memory_order_relaxed);
    if (since != 0) idle_total_.fetch_add(now() - since, std::memory_order_relaxed);
    waits_.store(0, std::memory_order_relaxed);
  }

 protected:
  /// It waits, for the how-many-th time in a row.
  std::uint64_t idle() {
    if (idle_since_.load(std::memory_order_relaxed) == 0) idle_since_.store(now(), std::memory_order_relaxed);
    return waits_.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  std::int64_t created_ = base::now_ns();
  std::atomic<std::int64_t> idle_since_ = 0;
  std::atomic<std::int64_t> idle_total_ = 0;
  std::atomic<std::uint64_t> waits_ = 0;
};

}  // namespace lacuna::nic
