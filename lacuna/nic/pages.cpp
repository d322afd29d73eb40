// Memory of NICs that register any.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "lacuna/nic/real.hpp"

namespace lacuna::nic {
namespace {

constexpr std::size_t kPage = 4096;
std::size_t pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Result<std::span<std::byte>> map_pages(std::size_t bytes) {
  if (bytes == 0) return base::fail(base::Code::invalid_argument, "a buffer of 0 bytes");
  void* memory = mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return base::fail(base::Code::out_of_memory, fmt::format("{} bytes: {}", bytes, std::strerror(errno)));
  return std::span(static_cast<std::byte*>(memory), bytes);
}

void unmap_pages(std::span<std::byte> bytes) { munmap(bytes.data(), pages(bytes.size())); }

}  // namespace lacuna::nic
