// Pages that are held as an RDMA device holds them: what is fetched and put goes to those that were mapped when they
// were pinned, whatever is mapped at their addresses now. They are registered buffers of an io_uring
// (io_uring_register_buffers(3)), which any user may have.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lacuna/base/base.hpp"

namespace lacuna::test::mlx5 {

class Pins {
 public:
  /// Errors: unsupported (a container or a kernel that has no io_uring).
  static base::Result<std::unique_ptr<Pins>> open();
  ~Pins();
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  /// Errors: limit (RLIMIT_MEMLOCK, too many), invalid_argument (not mapped).
  base::Result<int> pin(std::span<std::byte> bytes);
  void unpin(int pinned);
  void fetch(int pinned, const std::byte* at, std::span<std::byte> into);
  void put(int pinned, std::byte* at, std::span<const std::byte> from);

 private:
  struct Ring;
  explicit Pins(std::unique_ptr<Ring> ring, base::Fd bounce);
  std::unique_ptr<Ring> ring_;
  base::Fd bounce_;  // io_uring moves between buffers and files
  std::vector<int> free_;
};

}  // namespace lacuna::test::mlx5
