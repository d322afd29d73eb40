#include "lacuna/mpi/host/lookup.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <new>

namespace lacuna::mpi {
namespace {

bool is_of_mpi(const char* name) {
  const char* at = *name == 'P' ? name + 1 : name;
  return std::strncmp(at, "MPI_", 4) == 0 || std::strncmp(at, "MPIX_", 5) == 0;
}

// Null: this library does not have it.
void* own_function(const char* name) {
  Dl_info own{};
  if (dladdr(reinterpret_cast<void*>(&next_dlsym), &own) == 0) return nullptr;
  void* const library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = next_dlsym()(library, name);
  dlclose(library);
  return found != nullptr && object_of(found) == own.dli_fbase ? found : nullptr;
}

}  // namespace

void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* own_object() {
  static void* const own = object_of(reinterpret_cast<void*>(&own_object));
  return own;
}

// Asked for anew each time until it is known: this may be called before any constructor has run.
Lookup next_dlsym() {
  static std::atomic<Lookup> known;
  Lookup next = known.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
#if defined(__x86_64__) && defined(__GLIBC__)
  // Every glibc of this processor has that version.
  const auto first = reinterpret_cast<Lookup>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  next = reinterpret_cast<Lookup>(first(RTLD_NEXT, "dlsym"));
  if (next == nullptr) next = first;
#else
  next = &dlsym;
#endif
  known.store(next, std::memory_order_relaxed);
  return next;
}

void* seen(void* found, const char* name) try {
  if (found == nullptr || !is_of_mpi(name)) return found;
  void* const host = object_of_host();
  void* const own = host != nullptr && object_of(found) == host ? own_function(name) : nullptr;
  dlerror();  // what was asked for was found
  return own != nullptr ? own : found;
} catch (const std::bad_alloc&) {
  return found;
}

}  // namespace lacuna::mpi

#if defined(__x86_64__) && defined(__GLIBC__)

// What dlsym is to go on with: the function of the same arguments.
extern "C" __attribute__((visibility("hidden"), used)) void* lacuna_mpi_lookup(void* handle, const char* name) noexcept;
extern "C" __attribute__((visibility("hidden"), used)) lacuna::mpi::Lookup lacuna_mpi_choose(void* handle, const char* name) noexcept;

void* lacuna_mpi_lookup(void* handle, const char* name) noexcept {
  return lacuna::mpi::seen(lacuna::mpi::next_dlsym()(handle, name), name);
}

lacuna::mpi::Lookup lacuna_mpi_choose(void* handle, const char* name) noexcept {
  const bool by_handle = handle != RTLD_DEFAULT && handle != RTLD_NEXT && name != nullptr;
  return by_handle && lacuna::mpi::is_of_mpi(name) ? &lacuna_mpi_lookup : lacuna::mpi::next_dlsym();
}

// The C library looks at the address to which its dlsym returns: RTLD_NEXT and RTLD_DEFAULT depend on the caller. So
// this jumps there, with the stack and the arguments as they were.
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
  .p2align 4
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call lacuna_mpi_choose
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");

#endif
