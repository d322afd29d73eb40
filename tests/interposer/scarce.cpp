#include "tests/interposer/scarce.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lacuna::test::scarce {

thread_local long left = -2;
thread_local bool for_good = false;
thread_local std::size_t longest = 0;
thread_local int others = 0;

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (others == 0) longest = std::max(longest, bytes);
  if (others == 0 && left != -2) {
    if (left > 0) {
      --left;
    } else if (left == 0 || for_good) {
      left = -1;
      throw std::bad_alloc();
    }
  }
  void* const got =
      alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

}  // namespace
}  // namespace lacuna::test::scarce

// All forms of `new` come here by the library's own, which call these.
void* operator new(std::size_t bytes) { return lacuna::test::scarce::allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return lacuna::test::scarce::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*unused*/) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& unused) noexcept { return operator new(bytes, unused); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
