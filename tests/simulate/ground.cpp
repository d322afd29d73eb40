#include "tests/simulate/ground.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace lacuna::simulate {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 32;  // of addresses
constexpr std::size_t kPage = 4096;

std::size_t pages(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage; }

}  // namespace

Ground::Ground() {
  void* const made = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return;
  begin_ = static_cast<std::byte*>(made);
  free_[0] = kBytes;
}

Ground::~Ground() {
  if (begin_ != nullptr) munmap(begin_, kBytes);
}

std::span<std::byte> Ground::take(std::size_t bytes) {
  const std::size_t wanted = pages(bytes);
  const auto found = std::ranges::find_if(free_, [wanted](const auto& one) { return one.second >= wanted; });
  if (found == free_.end()) return {};
  const auto [at, room] = *found;
  if (mprotect(begin_ + at, wanted, PROT_READ | PROT_WRITE) != 0) return {};
  free_.erase(found);
  if (room > wanted) free_[at + wanted] = room - wanted;
  return {begin_ + at, bytes};
}

void Ground::give_back(std::span<std::byte> bytes) {
  std::size_t at = static_cast<std::size_t>(bytes.data() - begin_), room = pages(bytes.size());
  // Other pages than those that were there, which nothing may touch
  mmap(begin_ + at, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ++given_back_;
  const auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + room) {
    room += next->second;
    free_.erase(next);
  }
  if (const auto after = free_.lower_bound(at); after != free_.begin()) {
    if (const auto before = std::prev(after); before->first + before->second == at) {
      before->second += room;
      return;
    }
  }
  free_[at] = room;
}

}  // namespace lacuna::simulate
