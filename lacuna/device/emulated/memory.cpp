#include "lacuna/device/emulated/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "lacuna/device/emulated/allocations.hpp"

namespace lacuna::device::emulated {
namespace {

// The device's addresses, which nobody can touch, and the same memory where kernels reach it, `kReach` bytes further.
constexpr std::size_t kReach = std::size_t{1} << 38;
constexpr std::size_t kPage = 4096;

std::byte* reserve() {
  void* memory = mmap(nullptr, 2 * kReach, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

void stray(const std::string& what) {
  fmt::print(stderr, "lacuna: a kernel or a copy of the emulated device {}\n", what);
  std::abort();
}

Allocations& Allocations::all() {
  static auto* allocations = new Allocations;  // never destroyed: the device's thread may outlive the program's end
  return *allocations;
}

base::Result<void*> Allocations::take(std::int64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (start_ == nullptr) start_ = reserve();
  const std::size_t pages = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
  if (start_ == nullptr || pages + kPage > kReach - next_)
    return base::fail(base::Code::out_of_memory,
                      fmt::format("{} bytes of emulated device memory; {} of {} addresses are used", bytes, next_, kReach));
  std::byte* const address = start_ + next_;
  if (mprotect(address + kReach, pages, PROT_READ | PROT_WRITE) != 0) return std::unexpected(base::system_error("mprotect", errno));
  next_ += pages + kPage;  // no address is used twice: a use after free is found
  spans_[reinterpret_cast<std::uintptr_t>(address)] = {static_cast<std::size_t>(bytes), true};
  return address;
}

base::Result<void*> Allocations::take_pinned(std::int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return base::fail(base::Code::out_of_memory, fmt::format("{} bytes of pinned memory", bytes));
  const std::scoped_lock lock(mutex_);
  spans_[reinterpret_cast<std::uintptr_t>(memory)] = {static_cast<std::size_t>(bytes), false};
  return memory;
}

void Allocations::give_back(void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto span = spans_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (span == spans_.end()) stray(fmt::format("or its user frees {}, which is no allocation", memory));
  auto* const bytes = static_cast<std::byte*>(memory);
  const std::size_t pages = (span->second.bytes + kPage - 1) / kPage * kPage;
  if (span->second.of_device) {
    (void)madvise(bytes + kReach, pages, MADV_DONTNEED);
    (void)mprotect(bytes + kReach, pages, PROT_NONE);
  } else {
    (void)munmap(memory, span->second.bytes);
  }
  spans_.erase(span);
  ++changes_;
}

bool Allocations::of_device(const void* address) const {
  const std::scoped_lock lock(mutex_);
  const auto* const byte = static_cast<const std::byte*>(address);
  return start_ != nullptr && byte >= start_ && byte < start_ + kReach;
}

std::byte* Allocations::reached(const void* address, std::int64_t bytes) const {
  if (!of_device(address)) return static_cast<std::byte*>(const_cast<void*>(address));
  return static_cast<std::byte*>(alias(reinterpret_cast<std::uintptr_t>(address), static_cast<std::size_t>(bytes), 1));
}

Allocations::Found Allocations::find(std::uintptr_t address) const {
  const std::scoped_lock lock(mutex_);
  auto after = spans_.upper_bound(address);
  if (after == spans_.begin()) return {};
  const auto& [start, span] = *--after;
  return {start, span.bytes, span.of_device ? kReach : 0, changes_};
}

void* alias(unsigned long long address, std::size_t bytes, std::size_t alignment) {
  thread_local Allocations::Found last;
  Allocations& all = Allocations::all();
  if (last.changes != all.changes() || address < last.start || address - last.start >= last.bytes) last = all.find(address);
  if (last.bytes == 0 || address - last.start + bytes > last.bytes)
    stray(fmt::format("touches {} bytes at {:#x}, which are not within an allocation; the one before begins at {:#x} and has {} bytes",
                      bytes, address, last.start, last.bytes));
  if (address % alignment != 0) stray(fmt::format("touches {} bytes at {:#x}, which {} does not divide", bytes, address, alignment));
  return reinterpret_cast<std::byte*>(address) + last.distance;
}

}  // namespace lacuna::device::emulated
