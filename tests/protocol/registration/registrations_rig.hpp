// Registrations on a NIC that pins: NIC verbs on the fake device with pages that are really pinned, or the device under
// test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "lacuna/protocol/registration/registration.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {

inline constexpr std::size_t kPage = 4096;

inline bool tests_a_device() { return tested_nic().starts_with("verbs:"); }

/// Errors: unsupported (nothing here pins).
inline base::Result<std::unique_ptr<nic::Context>> open_pinning() {
  if (tests_a_device()) return open_tested();
  LACUNA_TRY(mlx5::pin_pages());
  return mlx5::open();
}

/// Anonymous pages, with a first byte of one in each.
class Pages {
 public:
  explicit Pages(std::size_t pages) : bytes_(pages * kPage) {
    at_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t page = 0; page < pages; ++page) at_[page * kPage] = std::byte{1};
  }
  ~Pages() { munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* at(std::size_t page) const { return at_ + page * kPage; }
  [[nodiscard]] std::span<std::byte> pages(std::size_t from, std::size_t count) const { return {at(from), count * kPage}; }

 private:
  std::byte* at_;
  std::size_t bytes_;
};

}  // namespace lacuna::test
