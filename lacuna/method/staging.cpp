#include "lacuna/method/staging.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::method {

Result<Staging> Staging::create(nic::Context& context, std::int64_t bytes) {
  Staging staging;
  staging.buffer = LACUNA_TRY(context.allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  staging.region = LACUNA_TRY(context.register_memory(staging.buffer.bytes(), {}));
  return staging;
}

bool reachable(const Endpoint& endpoint, const nic::Region& region) {
  const nic::PathInfo* path = endpoint.limits().path(endpoint.qp().path());
  return path == nullptr || !path->shared_only || region.shared();
}

Result<Flag> Flag::create(nic::Context& context) { return Flag(LACUNA_TRY(Staging::create(context, sizeof(std::uint64_t)))); }

nic::SendRequest Flag::raise(const Endpoint& endpoint, const Target::Part& peers) {
  *word() = transfers_;
  return {.opcode = nic::Opcode::write,
          .sg_list = {&sge_, 1},
          .remote_addr = peers.addr,
          .rkey = peers.rkey,
          .inline_data = std::cmp_greater_equal(endpoint.limits().max_inline, sizeof(std::uint64_t))};
}

}  // namespace lacuna::method
