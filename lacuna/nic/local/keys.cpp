#include "lacuna/nic/local/keys.hpp"

#include <fmt/format.h>

namespace lacuna::nic::local {
namespace {

constexpr std::uint32_t kGenerationBits = 16;  // a stale key fits again after 65535 uses of its entry, taken in turn

}  // namespace

std::optional<Grant> check(const SharedMemory& table, std::uint32_t key, std::uint64_t addr, std::uint64_t length, std::uint32_t rights) {
  const std::uint32_t index = key >> kGenerationBits;
  if (key == 0 || index >= kMaxRegions) return std::nullopt;
  const KeyEntry& entry = reinterpret_cast<const KeyEntry*>(table.data())[index];
  if (entry.key.load(std::memory_order_seq_cst) != key) return std::nullopt;
  // The table may be a peer's: each number is read once, so that what is checked is what is used.
  const auto once = [](const auto& shared) { return __atomic_load_n(&shared, __ATOMIC_RELAXED); };
  const std::uint64_t from = once(entry.addr);
  const std::uint64_t bytes = once(entry.length);
  const std::uint64_t arena_offset = once(entry.arena_offset);
  if ((once(entry.rights) & rights) != rights || addr < from || length > bytes || addr - from > bytes - length) return std::nullopt;
  if (arena_offset == kNotShared) return Grant{kNotShared};
  std::uint64_t offset = 0;
  if (__builtin_add_overflow(arena_offset, addr - from, &offset)) return std::nullopt;
  return Grant{offset};
}

Result<KeyTable> KeyTable::create() { return KeyTable(LACUNA_TRY(SharedMemory::create("lacuna keys", kKeyTableBytes))); }

Result<std::uint32_t> KeyTable::add(std::span<std::byte> bytes, Rights rights, std::optional<std::uint64_t> arena_offset) {
  std::uint32_t index = next_;
  if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else if (next_ == kMaxRegions) {
    return base::fail(base::Code::limit, fmt::format("{} regions are registered; this NIC takes no more", kMaxRegions));
  } else {
    ++next_;
    generations_.push_back(0);
  }
  KeyEntry& slot = entry(index);
  slot.rights = (rights.local_write ? kRightLocalWrite : 0) | (rights.remote_write ? kRightRemoteWrite : 0) |
                (rights.remote_read ? kRightRemoteRead : 0);
  slot.addr = reinterpret_cast<std::uint64_t>(bytes.data());
  slot.length = bytes.size();
  slot.arena_offset = arena_offset.value_or(kNotShared);
  if (++generations_[index] == 0) ++generations_[index];  // a key is never 0
  const std::uint32_t key = index << kGenerationBits | generations_[index];
  slot.key.store(key, std::memory_order_release);
  return key;
}

void KeyTable::revoke(std::uint32_t key) { entry(key >> kGenerationBits).key.store(0, std::memory_order_seq_cst); }

void KeyTable::release(std::uint32_t key) { free_.push_back(key >> kGenerationBits); }

}  // namespace lacuna::nic::local
