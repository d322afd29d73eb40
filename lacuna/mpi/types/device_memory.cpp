// Only a library that the program has loaded is asked: none is loaded here. The program may load one at any time, so
// the number of libraries that were ever loaded is compared, which takes 30 ns. To load a driver and to get memory from
// it takes many milliseconds, so the number is not compared again before kShort has passed. What a driver has called
// its memory is remembered. Such memory may be freed, and its addresses may become the host's: then the host MPI moves
// that message, which is right too. What is the CPU's is not remembered.
#include "lacuna/mpi/types/device_memory.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <string>

namespace lacuna::mpi {
namespace {

// Numbers of CUpointer_attribute in cuda.h; those of hipPointer_attribute are the same.
constexpr int kMemoryType = 2, kIsManaged = 8, kRangeStart = 11, kRangeSize = 12;
// Of CUmemorytype and of hipMemoryType: the memory of a GPU. HIP's was 1 until version 6.
constexpr std::uint64_t kDevice = 2, kOldHipDevice = 1;
constexpr int kHip6 = 60'000'000;

// A clock that is read in a few ns, and a time on it of less than a millisecond.
#if defined(__x86_64__)
constexpr std::uint64_t kShort = 1 << 20;  // at the 1 GHz and more of these counters
std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
constexpr std::uint64_t kShort = 1 << 10;  // at 1 MHz and more
std::uint64_t ticks() {
  std::uint64_t now = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
}
#else
constexpr std::uint64_t kShort = 0;
std::uint64_t ticks() { return 0; }
#endif

// cuPointerGetAttributes and hipDrvPointerGetAttributes. An address that they do not know has attributes of 0.
using Ask = int (*)(unsigned number, int* attributes, void** values, std::uintptr_t at);

struct Driver {
  const char* file;
  const char* function;
  std::atomic<Ask> ask{nullptr};
  std::atomic<std::uint64_t> device{kDevice};
};

struct Drivers {
  Mutex mutex;
  std::atomic<std::uint64_t> compared{0};        ///< when the number was
  std::atomic<unsigned long long> libraries{0};  ///< that had been loaded when they were looked through
  std::atomic<bool> some{false};
  Driver all[2]{{.file = "/libcuda.so", .function = "cuPointerGetAttributes"},
                {.file = "/libamdhip64.so", .function = "hipDrvPointerGetAttributes"}};
};

Drivers& drivers() {
  static Drivers made;
  return made;
}

unsigned long long libraries_loaded() {
  unsigned long long number = 0;
  const auto first = [](dl_phdr_info* info, std::size_t, void* to) {
    *static_cast<unsigned long long*>(to) = info->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(first, &number);
  return number;
}

// The path of a library that is loaded; empty: it is not.
std::string path_of(const char* file) {
  std::pair<const char*, std::string> wanted{file, {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* of) {
    auto& [name, found] = *static_cast<std::pair<const char*, std::string>*>(of);
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, name) == nullptr) return 0;
    found = info->dlpi_name;
    return 1;
  };
  dl_iterate_phdr(look, &wanted);
  return wanted.second;
}

void find(Driver& driver) {
  if (driver.ask.load(std::memory_order_relaxed) != nullptr) return;
  const std::string path = path_of(driver.file);
  void* const library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // which stays loaded
  if (library == nullptr) return;
  using Version = int (*)(int*);
  if (const auto version = reinterpret_cast<Version>(dlsym(library, "hipRuntimeGetVersion")); version != nullptr) {
    int number = 0;
    if (version(&number) == 0 && number < kHip6) driver.device = kOldHipDevice;
  }
  driver.ask.store(reinterpret_cast<Ask>(dlsym(library, driver.function)), std::memory_order_release);
}

struct Range {
  std::uintptr_t start = 0, size = 0;
};

// Of the thread that asks.
Range& recent() {
  static thread_local Range range;
  return range;
}

bool owns(const Driver& driver, std::uintptr_t at) {
  const Ask ask = driver.ask.load(std::memory_order_acquire);
  if (ask == nullptr) return false;
  std::uint64_t type = 0, managed = 0;
  int kinds[] = {kMemoryType, kIsManaged};
  void* values[] = {&type, &managed};
  if (ask(2, kinds, values, at) != 0) return false;  // the driver was not started, or does not know the address
  if ((type & UINT32_MAX) != driver.device && (managed & UINT32_MAX) == 0) return false;
  Range range;
  int ends[] = {kRangeStart, kRangeSize};
  void* range_values[] = {&range.start, &range.size};
  if (ask(2, ends, range_values, at) == 0 && range.start <= at && at - range.start < range.size) recent() = range;
  return true;
}

}  // namespace

bool has_devices() {
  Drivers& known = drivers();
  const std::uint64_t now = ticks();
  if (now - known.compared.load(std::memory_order_acquire) < kShort) return known.some.load(std::memory_order_relaxed);
  const unsigned long long libraries = libraries_loaded();
  if (libraries == known.libraries.load(std::memory_order_acquire)) {
    known.compared.store(now, std::memory_order_release);
    return known.some.load(std::memory_order_relaxed);
  }
  const std::scoped_lock lock(known.mutex);
  bool some = false;
  for (Driver& driver : known.all) {
    find(driver);
    some = some || driver.ask.load(std::memory_order_relaxed) != nullptr;
  }
  known.some.store(some, std::memory_order_relaxed);
  known.libraries.store(libraries, std::memory_order_release);
  return some;
}

bool on_device(const void* at) {
  if (!has_devices()) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const Range& range = recent();
  if (address - range.start < range.size) return true;
  for (const Driver& driver : drivers().all) {
    if (owns(driver, address)) return true;
  }
  return false;
}

bool on_device(const Type& type, const void* base, Count count) {
  if (!has_devices()) return false;
  const layout::Layout& one = type.layout();
  const auto first = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(type.start());
  if (on_device(reinterpret_cast<const void*>(first))) return true;
  if (!type.absolute()) return false;
  const auto last = first + static_cast<std::uintptr_t>((count - 1) * one.extent() + one.true_extent() - 1);
  return on_device(reinterpret_cast<const void*>(last));
}

}  // namespace lacuna::mpi
