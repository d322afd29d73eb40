#include "tools/bench/copy/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace lacuna::bench {
namespace {
constexpr std::int64_t kPage = 4096;
}

Arena::Arena(std::int64_t bytes, std::int64_t base) : bytes_((bytes / kPage + 2) * kPage), base_(base) {
  void* mapped = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(mapped);
}
Arena::~Arena() { munmap(memory_, static_cast<std::size_t>(bytes_)); }

void Arena::fill(const Lines& lines, std::uint64_t seed) {
  for (const Lines::Line& line : lines.lines) pages_.push_back(line.line / (kPage / 64));
  std::ranges::sort(pages_);
  pages_.erase(std::ranges::unique(pages_).begin(), pages_.end());
  std::uint64_t state = seed * 2 + 1;
  for (const std::int64_t page : pages_) {
    for (std::int64_t at = 0; at < kPage; at += 8) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t word = state ^ (state >> 29);
      std::memcpy(memory_ + page * kPage + at, &word, 8);
    }
  }
}

std::vector<std::byte> Arena::snapshot() const {
  std::vector<std::byte> copy(pages_.size() * kPage);
  for (std::size_t i = 0; i < pages_.size(); ++i) std::memcpy(copy.data() + i * kPage, memory_ + pages_[i] * kPage, kPage);
  return copy;
}

void Arena::restore(const std::vector<std::byte>& snapshot) {
  for (std::size_t i = 0; i < pages_.size(); ++i) std::memcpy(memory_ + pages_[i] * kPage, snapshot.data() + i * kPage, kPage);
}

}  // namespace lacuna::bench
