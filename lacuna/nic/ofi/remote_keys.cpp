#include "lacuna/nic/ofi/remote_keys.hpp"

#include <fmt/format.h>

namespace lacuna::nic::ofi {

Result<void> RemoteKeys::told(const Said& message) {
  RemoteRegion* region = find(message.key);
  if (region == nullptr || region->state != RemoteRegion::State::asked)
    return base::fail(base::Code::malformed, fmt::format("the peer tells of key {:#x}, for which nothing has asked", message.key));
  std::uint64_t end = 0;
  if (__builtin_add_overflow(message.addr, message.bytes, &end) || __builtin_add_overflow(message.target, message.bytes, &end))
    return base::fail(base::Code::malformed, fmt::format("the peer's region of {} bytes does not fit into 64 bits", message.bytes));
  region->state = message.bytes == 0 ? RemoteRegion::State::none : RemoteRegion::State::known;
  region->addr = message.addr;
  region->bytes = message.bytes;
  region->target = message.target;
  region->provider_key = message.provider_key;
  region->rights = message.rights;
  return {};
}

}  // namespace lacuna::nic::ofi
