#include "lacuna/nic/model/memory.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::nic::model {
namespace {

bool granted(const Rights& rights, Access access) {
  switch (access) {
    case Access::local_read: return true;
    case Access::local_write: return rights.local_write;
    case Access::remote_read: return rights.remote_read;
    case Access::remote_write: return rights.remote_write;
  }
  return false;
}

}  // namespace

std::uint32_t Memory::add_region(std::span<std::byte> bytes, Rights rights) {
  regions_[++keys_.given] = {bytes, rights};
  return keys_.given;
}

std::uint32_t Memory::add_indirect(int entries) {
  indirect_[++keys_.given].room = entries;
  return keys_.given;
}

void Memory::remove(std::uint32_t key) {
  invalidate(key);
  regions_.erase(key);
  indirect_.erase(key);
}

int Memory::room(std::uint32_t key) const {
  const auto found = indirect_.find(key);
  return found == indirect_.end() ? 0 : found->second.room;
}

bool Memory::bind(std::uint32_t key, Rights rights, std::span<const Sge> list) {
  if (!invalidate(key)) return false;
  Key& slot = indirect_[key];
  slot.bound = true;
  slot.rights = rights;
  slot.list.assign(list.begin(), list.end());
  slot.starts.assign(1, 0);
  for (const Sge& sge : list) slot.starts.push_back(slot.starts.back() + sge.length);
  keys_.bound += std::ssize(slot.list);
  return true;
}

bool Memory::invalidate(std::uint32_t key) {
  const auto found = indirect_.find(key);
  if (found == indirect_.end()) return false;
  keys_.bound -= std::ssize(found->second.list);
  found->second.list.clear();
  found->second.bound = false;
  return true;
}

bool Memory::resolve(std::span<const Sge> list, Access access, Pieces& pieces) const {
  for (const Sge& sge : list) {
    if (sge.length == 0) continue;
    const auto key = indirect_.find(sge.lkey);
    if (!(key == indirect_.end() ? direct(sge, access, -1, 0, pieces) : indirect(key->second, sge, access, pieces))) return false;
  }
  return true;
}

bool Memory::holds(const Pieces& pieces) const {
  std::uint32_t known = 0;
  for (const Piece& piece : pieces) {
    if (piece.region == known) continue;
    known = piece.region;
    if (!regions_.contains(known)) return false;
  }
  return true;
}

bool Memory::direct(const Sge& sge, Access access, std::int32_t entry, std::int32_t entries, Pieces& pieces) const {
  const auto found = regions_.find(sge.lkey);
  if (found == regions_.end() || !granted(found->second.rights, access)) return false;
  const auto start = reinterpret_cast<std::uint64_t>(found->second.bytes.data());
  const std::uint64_t size = found->second.bytes.size();
  if (sge.addr < start || sge.length > size || sge.addr - start > size - sge.length) return false;
  const auto offset = static_cast<std::int64_t>(sge.addr - start);
  pieces.push_back({found->second.bytes.data() + offset, sge.length, sge.lkey, offset, entry, entries});
  return true;
}

bool Memory::indirect(const Key& key, const Sge& sge, Access access, Pieces& pieces) const {
  if (!key.bound || !granted(key.rights, access)) return false;
  const std::int64_t end = key.starts.back();
  if (std::cmp_greater(sge.addr, end) || std::cmp_greater(sge.length, end - static_cast<std::int64_t>(sge.addr))) return false;
  auto at = static_cast<std::int64_t>(sge.addr);
  std::int64_t left = sge.length;
  auto i = static_cast<std::size_t>(std::ranges::upper_bound(key.starts, at) - key.starts.begin()) - 1;
  for (; left > 0; ++i) {
    const std::int64_t within = at - key.starts[i];
    const std::int64_t part = std::min<std::int64_t>(left, key.list[i].length - within);
    if (part <= 0) continue;  // an entry of no bytes
    const Sge piece{key.list[i].addr + static_cast<std::uint64_t>(within), static_cast<std::uint32_t>(part), key.list[i].lkey};
    if (!direct(piece, access, static_cast<std::int32_t>(i), static_cast<std::int32_t>(key.list.size()), pieces)) return false;
    at += part;
    left -= part;
  }
  return true;
}

std::vector<Sge> spelled_out(const Binding& binding) {
  std::vector<Sge> list(binding.list.begin(), binding.list.end());
  for (std::uint64_t round = 0; round < binding.repeat; ++round) {
    for (const Strided& strided : binding.strided) list.push_back({strided.addr + round * strided.stride, strided.bytes, strided.lkey});
  }
  return list;
}

void move_pieces(const Pieces& from, const Pieces& to) {
  copy::Pieces pieces;
  std::size_t at = 0;
  std::int64_t used = 0;  // of to[at]
  for (const Piece& piece : from) {
    for (std::int64_t done = 0; done < piece.length;) {
      const std::int64_t bytes = std::min(piece.length - done, to[at].length - used);
      pieces.add(to[at].at + used, piece.at + done, bytes);
      done += bytes;
      used += bytes;
      if (used == to[at].length) ++at, used = 0;
    }
  }
  pieces.move();
}

}  // namespace lacuna::nic::model
