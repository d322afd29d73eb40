#include "lacuna/nic/model/fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lacuna::nic::model {
namespace {

// A rank of an exchange takes some ten KiB, with AddressSanitizer some times as much. Only what is touched is memory.
constexpr std::size_t kStackBytes = 1 << 20;

std::size_t guard_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::~Fiber() {
  if (stack_.empty()) return;
#if defined(__SANITIZE_ADDRESS__)
  // Its frames were left without returning; others may get the same addresses.
  __asan_unpoison_memory_region(stack_.data(), stack_.size());
#elif defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(shadow_);
#endif
  munmap(stack_.data() - guard_bytes(), stack_.size() + guard_bytes());
}

bool Fiber::make(std::function<void()> body) {
  const std::size_t guard = guard_bytes();
  void* const memory = mmap(nullptr, guard + kStackBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  stack_ = {static_cast<std::byte*>(memory) + guard, kStackBytes};
  bottom_ = stack_.data();
  bytes_ = stack_.size();
#if defined(__SANITIZE_THREAD__)
  shadow_ = __tsan_create_fiber(0);
#endif
  if (mprotect(stack_.data(), stack_.size(), PROT_READ | PROT_WRITE) != 0 || getcontext(&context_) != 0) return false;
  body_ = std::move(body);
  context_.uc_stack = {.ss_sp = stack_.data(), .ss_flags = 0, .ss_size = stack_.size()};
  const auto self = reinterpret_cast<std::uintptr_t>(this);  // makecontext() passes ints on
  makecontext(&context_, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned int>(self >> 32), static_cast<unsigned int>(self));
  return true;
}

void Fiber::enter(unsigned int high, unsigned int low) {
  auto* const self = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
  self->arrived();
  [&]() noexcept { self->body_(); }();
}

void Fiber::change(Fiber& to, bool for_ever) {
  to.from_ = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack_, to.bottom_, to.bytes_);
#elif defined(__SANITIZE_THREAD__)
  if (shadow_ == nullptr) shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.shadow_, 0);
#endif
  void* const globals = abi::__cxa_get_globals();
  std::memcpy(&exceptions_, globals, sizeof exceptions_);
  std::memcpy(globals, &to.exceptions_, sizeof exceptions_);
  if (for_ever) {
    setcontext(&to.context_);
  } else {
    swapcontext(&context_, &to.context_);
    arrived();
  }
}

// The first thing on this stack after somebody switched to it.
void Fiber::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  // The thread's own stack is known once it was left.
  __sanitizer_finish_switch_fiber(fake_stack_, &from_->bottom_, &from_->bytes_);
#endif
}

}  // namespace lacuna::nic::model
