#include "tests/handover/allocations.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lacuna::test {
namespace {

Allocations now;  // of one thread, as all these tests are

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(memory));
  now.bytes += bytes;
  now.most = std::max(now.most, now.bytes);
  now.largest = std::max(now.largest, bytes);
  return memory;
}

void released(void* memory) {
  if (memory == nullptr) return;
  now.bytes -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

Allocations allocations() { return now; }
void watch() { now = {}; }

}  // namespace lacuna::test

void* operator new(std::size_t bytes) { return lacuna::test::counted(std::malloc(bytes)); }
void* operator new[](std::size_t bytes) { return lacuna::test::counted(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return lacuna::test::counted(std::aligned_alloc(to, (bytes + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { lacuna::test::released(memory); }
void operator delete[](void* memory) noexcept { lacuna::test::released(memory); }
void operator delete(void* memory, std::size_t) noexcept { lacuna::test::released(memory); }
void operator delete[](void* memory, std::size_t) noexcept { lacuna::test::released(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { lacuna::test::released(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { lacuna::test::released(memory); }
