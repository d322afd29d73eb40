#include "lacuna/nic/ofi/regions.hpp"

#include <fmt/format.h>

namespace lacuna::nic::ofi {
namespace {

constexpr int kMarkBits = 12;
constexpr std::uint32_t kMark = 0x5a5;  // in the middle of its range: a key plus or minus 1000 fits no region
constexpr int kAttempts = 8;            // with keys of which one may be taken

}  // namespace

Result<std::uint32_t> Regions::add(std::span<std::byte> bytes, Rights rights) {
  std::uint32_t key = 0;
  do {
    key = (++numbers_ << kMarkBits) | kMark;
  } while (regions_.contains(key));
  LocalRegion region{.addr = reinterpret_cast<std::uint64_t>(bytes.data()), .bytes = bytes.size(), .rights = rights};
  if (!provider_.asks_for(FI_MR_ENDPOINT)) region.memory = LACUNA_TRY(enroll(bytes, rights, nullptr));
  regions_.insert_or_assign(key, std::move(region));
  return key;
}

// `endpoint`: to which it shall belong; null: to none.
Result<Owned<fid_mr>> Regions::enroll(std::span<std::byte> bytes, Rights rights, fid_ep* endpoint) {
  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | (rights.remote_write ? FI_REMOTE_WRITE : 0) | (rights.remote_read ? FI_REMOTE_READ : 0);
  // A peer that was not told such a key does not find the key by chance.
  const std::size_t key_bytes = provider_.info().domain_attr->mr_key_size;
  const std::uint64_t mask = key_bytes >= sizeof mask ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * key_bytes)) - 1;
  Owned<fid_mr> made;
  int error = -FI_ENOKEY;
  for (int attempt = 0; error == -FI_ENOKEY && attempt < kAttempts; ++attempt) {
    const std::uint64_t wanted = (std::uint64_t{random_()} << 32 | random_()) & mask;
    fid_mr* memory = nullptr;
    error = fi_mr_reg(provider_.domain(), bytes.data(), bytes.size(), access, 0, wanted, 0, &memory, nullptr);
    if (error != 0) continue;
    made.reset(memory);
    if (endpoint == nullptr) break;
    error = fi_mr_bind(memory, &endpoint->fid, 0);
    if (error == 0) error = fi_mr_enable(memory);
  }
  if (error != 0)
    return std::unexpected(failure(provider_.library(), fmt::format("fi_mr_reg of {} bytes on {}", bytes.size(), provider_.name()), error));
  return made;
}

LocalRegion* Regions::find(std::uint32_t key) {
  const auto found = regions_.find(key);
  return found == regions_.end() || found->second.going ? nullptr : &found->second;
}

fid_mr* Regions::memory(LocalRegion& region, fid_ep& endpoint) {
  if (region.memory) return region.memory.get();
  for (const auto& [owner, memory] : region.bound) {
    if (owner == &endpoint) return memory.get();
  }
  return bind(region, endpoint);
}

fid_mr* Regions::bind(LocalRegion& region, fid_ep& endpoint) {
  Result<Owned<fid_mr>> made = enroll({reinterpret_cast<std::byte*>(region.addr), region.bytes}, region.rights, &endpoint);
  if (!made) {
    base::log(base::Level::warn, made.error().text());
    return nullptr;
  }
  return region.bound.emplace_back(&endpoint, std::move(*made)).second.get();
}

void Regions::release(const fid_ep* endpoint) {
  for (auto& [key, region] : regions_) std::erase_if(region.bound, [&](const auto& one) { return one.first == endpoint; });
}

bool Regions::resolve(std::span<const Sge> list, bool written, fid_ep& endpoint, Pieces& pieces) {
  pieces.count = 0;
  pieces.bytes = 0;
  for (const Sge& sge : list) {
    if (sge.length == 0) continue;
    LocalRegion* region = find(sge.lkey);
    // A right to write remotely comes with the one to write locally, as on NIC verbs.
    if (region == nullptr || !region->holds(sge.addr, sge.length)) return false;
    if (written && !region->rights.local_write && !region->rights.remote_write) return false;
    pieces.iov[pieces.count] = {reinterpret_cast<void*>(sge.addr), sge.length};
    // A provider that does not look at local memory takes no registration for it.
    const bool looks = region->memory || provider_.asks_for(FI_MR_LOCAL);
    fid_mr* const memory = looks ? this->memory(*region, endpoint) : nullptr;
    if (looks && memory == nullptr) return false;
    pieces.desc[pieces.count++] = looks ? fi_mr_desc(memory) : nullptr;
    pieces.bytes += sge.length;
  }
  return true;
}

}  // namespace lacuna::nic::ofi
