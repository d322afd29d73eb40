#include "tests/copy/memory.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace lacuna::copy_test {
namespace {

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Arenas that are not in use, by size: to map pages costs more than most tests. For the main thread.
std::map<std::size_t, std::vector<std::unique_ptr<Arena>>>& spare() {
  static std::map<std::size_t, std::vector<std::unique_ptr<Arena>>> arenas;
  return arenas;
}

std::unique_ptr<Arena> take(std::size_t bytes) {
  const std::size_t size = std::bit_ceil(std::max(bytes, 8 * page()));
  auto& arenas = spare()[size];
  if (arenas.empty()) return std::make_unique<Arena>(size);
  std::unique_ptr<Arena> arena = std::move(arenas.back());
  arenas.pop_back();
  return arena;
}

}  // namespace

void fill(std::span<std::byte> bytes, Random& random) {
  // A length that no stride divides.
  static const Bytes noise = [] {
    Bytes made((1 << 20) + 4099);
    Random own(20251121);
    for (std::byte& byte : made) byte = static_cast<std::byte>(own.next() >> 56);
    return made;
  }();
  auto at = static_cast<std::size_t>(random.below(std::ssize(noise)));
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), noise.size() - at);
    std::memcpy(bytes.data(), noise.data() + at, n);
    bytes = bytes.subspan(n);
    at = 0;
  }
}

Arena::Arena(std::size_t bytes) {
  const std::size_t size = (bytes + page() - 1) / page() * page();
  void* mapped = mmap(nullptr, size + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("mmap: " + std::string(std::strerror(errno)));
  pages_ = {static_cast<std::byte*>(mapped) + page(), size};
  if (mprotect(pages_.data(), size, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error("mprotect: " + std::string(std::strerror(errno)));
}

Arena::~Arena() { munmap(pages_.data() - page(), pages_.size() + 2 * page()); }

Memory::Memory(std::int64_t low, std::int64_t bytes, Random& random) : low_(low) {
  const auto size = static_cast<std::size_t>(bytes);
  const auto shift = static_cast<std::size_t>(random.below(64));
  switch (random.below(4)) {
    case 0:
      placed_ = "ends at a page that faults";
      arena_ = take(size);
      data_ = arena_->pages().data() + arena_->pages().size() - size;
      all_ = {data_, size};
      break;
    case 1:
      placed_ = "begins behind a page that faults";
      arena_ = take(size);
      data_ = arena_->pages().data();
      all_ = {data_, size};
      break;
    case 2: {
      placed_ = "an allocation, used to its end";
      heap_.reset(new std::byte[shift + size]);
      data_ = heap_.get() + shift;
      all_ = {heap_.get(), shift + size};
      break;
    }
    default: {
      constexpr std::size_t zone = 128;
      placed_ = "between zones";
      heap_.reset(new std::byte[shift + size + 2 * zone]);
      data_ = heap_.get() + shift + zone;
      all_ = {heap_.get(), shift + size + 2 * zone};
      break;
    }
  }
  fill(all_, random);
}

Memory::~Memory() {
  if (arena_) spare()[arena_->pages().size()].push_back(std::move(arena_));
}

std::string Memory::text() const { return fmt::format("{}, at {} modulo 64", placed_, reinterpret_cast<std::uintptr_t>(data_) % 64); }

// --- what was being tested -------------------------------------------------------------------------------------------

namespace {

std::string announced;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
struct sigaction before[std::size(kSignals)];

void tell() {
  if (announced.empty()) return;
  constexpr char what[] = "\nThe process dies while testing:\n";
  (void)!write(STDERR_FILENO, what, sizeof what - 1);
  (void)!write(STDERR_FILENO, announced.data(), announced.size());
  (void)!write(STDERR_FILENO, "\n", 1);
  announced.clear();
}

// Faults again after it returns, for whoever handled it before.
void on_fault(int) {
  tell();
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

}  // namespace

Announced::Announced(std::string text) {
  [[maybe_unused]] static const bool installed = [] {
    struct sigaction action{};
    action.sa_handler = on_fault;
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before[i]);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(tell);
#endif
    return true;
  }();
  announced = std::move(text);
}

Announced::~Announced() { announced.clear(); }

}  // namespace lacuna::copy_test
