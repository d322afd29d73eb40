#include "lacuna/nic/local/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::nic::local {
namespace {

constexpr std::uint32_t kGenerationBits = 16;  // a stale key fits again after 65535 uses of its entry, taken in turn

std::uint32_t index_of(std::uint32_t key) { return key >> kGenerationBits; }

using base::read_once;

struct EntrySnapshot {
  std::uint64_t addr, length, place;
  std::uint32_t entries, repeat;
};

// The entry of `key`, if that covers [addr, addr + length) and grants all of `rights`.
std::optional<EntrySnapshot> check(const SharedMemory& table, std::uint32_t key, std::uint64_t addr, std::uint64_t length,
                                   std::uint32_t rights) {
  const std::uint32_t index = index_of(key);
  if (key == 0 || index >= kMaxKeys) return std::nullopt;
  const KeyEntry& entry = reinterpret_cast<const KeyEntry*>(table.data())[index];
  if (entry.key.load(std::memory_order_seq_cst) != key) return std::nullopt;
  const EntrySnapshot seen{read_once(entry.addr), read_once(entry.length), read_once(entry.place), read_once(entry.entries),
                           read_once(entry.repeat)};
  if ((read_once(entry.rights) & rights) != rights || addr < seen.addr || length > seen.length || addr - seen.addr > seen.length - length)
    return std::nullopt;
  return seen;
}

bool append_region(const EntrySnapshot& seen, std::uint64_t addr, std::uint64_t length, std::vector<Extent>& extents) {
  std::uint64_t offset = kNotShared;
  if (seen.place != kNotShared && __builtin_add_overflow(seen.place, addr - seen.addr, &offset)) return false;
  extents.push_back({addr, length, offset});
  return true;
}

// Follows an indirect key.
class Translator {
 public:
  Translator(const Keys& keys, const EntrySnapshot& seen, std::uint32_t rights, std::size_t most, std::vector<Extent>& extents)
      : keys_(keys), seen_(seen), rights_(rights), most_(most), extents_(extents) {}

  std::optional<std::uint64_t> run(std::uint64_t at, std::uint64_t bytes) {
    const std::uint64_t room = keys_.translations.size() / sizeof(Translation);
    if (seen_.place > room || seen_.entries > room - seen_.place) return std::nullopt;
    list_ = reinterpret_cast<const Translation*>(keys_.translations.data()) + seen_.place;
    if (seen_.repeat == 0) return round(at, bytes, 0);
    const Translation last = read(seen_.entries - 1);
    const std::uint64_t of_round = last.start + last.length;
    std::uint64_t done = 0;
    while (done < bytes && extents_.size() < most_) {
      if (of_round == 0) return std::nullopt;
      const std::uint64_t within = (at + done) % of_round;
      const auto part = round(within, std::min(bytes - done, of_round - within), (at + done) / of_round);
      if (!part) return std::nullopt;
      done += *part;
    }
    return done;
  }

 private:
  [[nodiscard]] Translation read(std::uint32_t i) const { return read_once(list_[i]); }

  // The last entry that starts at or before `at`; entries out of order end the search all the same.
  [[nodiscard]] std::uint32_t find(std::uint64_t at) const {
    std::uint32_t low = 0;
    for (std::uint32_t count = seen_.entries; count > 1;) {
      const std::uint32_t half = count / 2;
      if (read_once(list_[low + half].start) <= at) low += half;
      count -= half;
    }
    return low;
  }

  // Bytes [at, at + bytes) of a list, or of round number `number`.
  std::optional<std::uint64_t> round(std::uint64_t at, std::uint64_t bytes, std::uint64_t number) {
    std::uint64_t done = 0;
    for (std::uint32_t i = find(at); done < bytes && extents_.size() < most_; ++i) {
      if (i == seen_.entries) return std::nullopt;
      const Translation piece = read(i);
      const std::uint64_t within = at + done - piece.start;
      if (at + done < piece.start || within >= piece.length) return std::nullopt;
      const std::uint64_t part = std::min(bytes - done, piece.length - within);
      const std::uint64_t addr = piece.addr + number * piece.stride + within;
      const std::optional<EntrySnapshot> region = check(keys_.table, piece.key, addr, part, rights_);
      if (!region || region->entries != 0 || !append_region(*region, addr, part, extents_)) return std::nullopt;
      done += part;
    }
    return done;
  }

  const Keys& keys_;
  const EntrySnapshot& seen_;
  std::uint32_t rights_;
  std::size_t most_;
  std::vector<Extent>& extents_;
  const Translation* list_ = nullptr;
};

}  // namespace

std::uint32_t right_bits(const Rights& rights) {
  return (rights.local_write ? kRightLocalWrite : 0) | (rights.remote_write ? kRightRemoteWrite : 0) |
         (rights.remote_read ? kRightRemoteRead : 0);
}

std::optional<std::uint64_t> resolve(const Keys& keys, std::span<const Sge> list, std::uint64_t from, std::uint64_t bytes,
                                     std::uint32_t rights, std::size_t most, std::vector<Extent>& extents) {
  std::uint64_t done = 0;
  for (const Sge& sge : list) {
    if (done == bytes || extents.size() >= most) break;
    if (from >= sge.length) {
      from -= sge.length;
      continue;
    }
    const std::uint64_t part = std::min(bytes - done, sge.length - from);
    std::uint64_t addr = 0;
    if (__builtin_add_overflow(sge.addr, from, &addr)) return std::nullopt;
    const std::optional<EntrySnapshot> seen = check(keys.table, sge.lkey, addr, part, rights);
    if (!seen) return std::nullopt;
    if (seen->entries == 0) {
      if (!append_region(*seen, addr, part, extents)) return std::nullopt;
      done += part;
    } else {
      const auto got = Translator(keys, *seen, rights, most, extents).run(addr, part);
      if (!got) return std::nullopt;
      done += *got;
      if (*got < part) break;
    }
    from = 0;
  }
  return done;
}

Result<KeyTable> KeyTable::create() {
  return KeyTable(LACUNA_TRY(SharedMemory::create("lacuna keys", kKeyTableBytes)),
                  LACUNA_TRY(Arena::create("lacuna translations", kTranslationBytes)));
}

Result<std::uint32_t> KeyTable::take_index() {
  if (!free_.empty()) {
    const std::uint32_t index = free_.front();
    free_.pop_front();
    return index;
  }
  if (owned_.size() == kMaxKeys) return base::fail(base::Code::limit, fmt::format("{} keys are in use; this NIC takes no more", kMaxKeys));
  owned_.emplace_back();
  return static_cast<std::uint32_t>(owned_.size() - 1);
}

std::uint32_t KeyTable::next_key(std::uint32_t index) {
  std::uint16_t& generation = owned_[index].generation;
  if (++generation == 0) ++generation;  // a key is never 0
  return index << kGenerationBits | generation;
}

Result<std::uint32_t> KeyTable::add_region(std::span<std::byte> bytes, Rights rights, std::optional<std::uint64_t> arena_offset) {
  const std::uint32_t index = LACUNA_TRY(take_index());
  const std::uint32_t key = next_key(index);
  KeyEntry& slot = entry(index);
  slot.rights = right_bits(rights);
  slot.addr = reinterpret_cast<std::uint64_t>(bytes.data());
  slot.length = bytes.size();
  slot.place = arena_offset.value_or(kNotShared);
  slot.entries = slot.repeat = 0;
  slot.key.store(key, std::memory_order_release);
  return key;
}

Result<std::uint32_t> KeyTable::add_indirect(int entries) {
  const auto room = translations_.allocate(static_cast<std::size_t>(entries) * sizeof(Translation));
  if (!room) {
    return base::fail(base::Code::limit,
                      fmt::format("no room for an indirect key of {} entries: the keys there are take most of the {} entries of this NIC",
                                  entries, kTranslationBytes / sizeof(Translation)));
  }
  const std::span<std::byte> memory = *room;
  const Result<std::uint32_t> index = take_index();
  if (!index) {
    translations_.free(memory);
    return index;
  }
  std::ranges::fill(memory, std::byte{0});  // the pages are paid for here, once, and not by the first binding
  owned_[*index].translations = memory;
  ++indirect_;
  return next_key(*index);
}

int KeyTable::indirect_entries(std::uint32_t key) const {
  const std::uint32_t index = index_of(key);
  if (index >= owned_.size() || owned_[index].generation != (key & ((1U << kGenerationBits) - 1))) return 0;
  return static_cast<int>(owned_[index].translations.size() / sizeof(Translation));
}

void KeyTable::bind(const PreparedBinding& binding) {
  const std::uint32_t index = index_of(binding.key);
  const std::span<std::byte> memory = owned_[index].translations;
  std::ranges::copy(binding.translations, reinterpret_cast<Translation*>(memory.data()));
  KeyEntry& slot = entry(index);
  slot.rights = binding.rights;
  slot.addr = 0;
  slot.length = binding.length;
  slot.place = static_cast<std::uint64_t>(memory.data() - translations_.memory().data()) / sizeof(Translation);
  slot.entries = static_cast<std::uint32_t>(binding.translations.size());
  slot.repeat = binding.repeat;
  slot.key.store(binding.key, std::memory_order_release);
}

void KeyTable::revoke(std::uint32_t key) { entry(index_of(key)).key.store(0, std::memory_order_seq_cst); }

void KeyTable::release(std::uint32_t key) {
  const std::uint32_t index = index_of(key);
  if (!owned_[index].translations.empty()) {
    translations_.free(std::exchange(owned_[index].translations, {}));
    --indirect_;
  }
  free_.push_back(index);
}

}  // namespace lacuna::nic::local
