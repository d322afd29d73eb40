// allocations: what memory the emulated device has given out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "lacuna/base/base.hpp"

namespace lacuna::device::emulated {

/// Ends the program: "lacuna: a kernel of the emulated device ...".
[[noreturn]] void stray(const std::string& what);

class Allocations {
 public:
  static Allocations& all();

  base::Result<void*> take(std::int64_t bytes);
  base::Result<void*> take_pinned(std::int64_t bytes);
  void give_back(void* memory);

  [[nodiscard]] bool of_device(const void* address) const;
  /// Where `bytes` at an address, the device's or the host's, can be reached. Ends the program if those of the device
  /// are not within one allocation.
  [[nodiscard]] std::byte* reached(const void* address, std::int64_t bytes) const;

  struct Found {
    std::uintptr_t start = 0;
    std::size_t bytes = 0;
    std::size_t distance = 0;  ///< from an address to the bytes
    std::uint64_t changes = 0;
  };
  /// The allocation that begins at the address or is the last one before it.
  [[nodiscard]] Found find(std::uintptr_t address) const;
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

 private:
  struct Span {
    std::size_t bytes;
    bool of_device;
  };
  mutable std::mutex mutex_;
  std::byte* start_ = nullptr;
  std::size_t next_ = 0;
  std::map<std::uintptr_t, Span> spans_;
  std::atomic<std::uint64_t> changes_{1};
};

}  // namespace lacuna::device::emulated
