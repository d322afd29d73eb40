#include "tests/interposer/buffer.hpp"

#include <dlfcn.h>

#include "lacuna/mpi/types/device_memory.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test::fake {
namespace {

bool owner(std::uint64_t at, std::uint64_t* start, std::uint64_t* bytes) {
  const device::emulated::Allocations::Found found = device::emulated::Allocations::all().find(at);
  if (found.distance == 0 || at - found.start >= found.bytes) return false;
  *start = found.start;
  *bytes = found.bytes;
  return true;
}

}  // namespace

// A driver that has only just been loaded is not looked for at once: none is as quick to give memory.
std::string load_driver() {
  void* const driver = dlopen(LACUNA_STUB_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return dlerror();
  using Owner = bool (*)(std::uint64_t, std::uint64_t*, std::uint64_t*);
  *static_cast<Owner*>(dlsym(driver, "lacuna_stub_owner")) = owner;
  return await("the driver to be found", [] { return mpi::has_devices(); });
}

}  // namespace lacuna::test::fake
