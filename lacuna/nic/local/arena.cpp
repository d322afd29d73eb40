#include "lacuna/nic/local/arena.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::nic::local {
namespace {

constexpr std::size_t kLeast = std::size_t{64} << 20;  // bytes of an arena

}  // namespace

Arena::Arena(SharedMemory memory) : memory_(std::move(memory)), page_(static_cast<std::size_t>(base::machine().page_bytes)) {
  free_[0] = memory_.size();
}

Result<Arena> Arena::create(const char* name, std::size_t bytes) { return Arena(LACUNA_TRY(SharedMemory::create(name, bytes))); }

Result<Arena> Arena::create_largest(const char* name, std::int64_t wanted) {
  // Address space, not memory.
  Result<SharedMemory> memory = base::fail(base::Code::out_of_memory, "");
  const auto machine = static_cast<std::size_t>(base::machine().memory_bytes);
  const std::size_t most =
      wanted > 0 ? std::max<std::size_t>(static_cast<std::size_t>(wanted), kLeast) : std::max<std::size_t>(machine >> 30, 1) << 30;
  for (std::size_t bytes = most; bytes >= kLeast && !memory; bytes /= 2) {
    memory = SharedMemory::create(name, bytes);
  }
  return Arena(LACUNA_TRY(std::move(memory)));
}

Result<std::span<std::byte>> Arena::allocate(std::size_t bytes) {
  if (bytes == 0) return base::fail(base::Code::invalid_argument, "an allocation of 0 bytes");
  if (bytes <= memory_.size()) {
    const std::size_t wanted = rounded(bytes);
    const auto hole = std::ranges::find_if(free_, [&](const auto& one) { return one.second >= wanted; });
    if (hole != free_.end()) {
      Holes one{{0, 0}};
      spare_.push_back(one.extract(one.begin()));
      const auto [at, size] = *hole;
      Holes::node_type rest = free_.extract(hole);
      if (size > wanted) {
        rest.key() = at + wanted;
        rest.mapped() = size - wanted;
        free_.insert(std::move(rest));
      }
      return std::span(memory_.data() + at, bytes);
    }
  }
  return base::fail(base::Code::out_of_memory,
                    fmt::format("no {} bytes in one piece left in the shared arena of {} bytes", bytes, memory_.size()));
}

void Arena::free(std::span<std::byte> bytes) noexcept {
  memory_.discard(bytes.data(), rounded(bytes.size()));
  Holes::node_type made = std::move(spare_.back());
  spare_.pop_back();
  made.key() = static_cast<std::size_t>(bytes.data() - memory_.data());
  made.mapped() = rounded(bytes.size());
  auto hole = free_.insert(std::move(made)).position;
  if (const auto next = std::next(hole); next != free_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    free_.erase(next);
  }
  if (hole == free_.begin()) return;
  if (const auto before = std::prev(hole); before->first + before->second == hole->first) {
    before->second += hole->second;
    free_.erase(hole);
  }
}

std::optional<std::uint64_t> Arena::offset_of(std::span<const std::byte> bytes) const {
  const auto from = reinterpret_cast<std::uintptr_t>(memory_.data());
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (at < from || at - from > memory_.size() || bytes.size() > memory_.size() - (at - from)) return std::nullopt;
  return at - from;
}

}  // namespace lacuna::nic::local
