#include "lacuna/nic/local/keys.hpp"

#include <fmt/format.h>

namespace lacuna::nic::local {
namespace {

constexpr std::uint32_t kGenerationBits = 8;

}  // namespace

std::optional<Grant> check(const SharedMemory& table, std::uint32_t key, std::uint64_t addr, std::uint64_t length, std::uint32_t rights) {
  const std::uint32_t index = key >> kGenerationBits;
  if (key == 0 || index >= kMaxRegions) return std::nullopt;
  const KeyEntry& entry = reinterpret_cast<const KeyEntry*>(table.data())[index];
  if (entry.key.load(std::memory_order_seq_cst) != key) return std::nullopt;
  if ((entry.rights & rights) != rights || addr < entry.addr || length > entry.length || addr - entry.addr > entry.length - length)
    return std::nullopt;
  return Grant{entry.arena_offset == kNotShared ? kNotShared : entry.arena_offset + (addr - entry.addr)};
}

Result<KeyTable> KeyTable::create() { return KeyTable(LACUNA_TRY(SharedMemory::create("lacuna keys", kKeyTableBytes))); }

Result<std::uint32_t> KeyTable::add(std::span<std::byte> bytes, Rights rights, std::optional<std::uint64_t> arena_offset) {
  std::uint32_t index = next_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
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
