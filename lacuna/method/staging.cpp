#include "lacuna/method/staging.hpp"

#include <utility>

namespace lacuna::method {

bool reachable(const Endpoint& endpoint, const nic::Region& region) {
  const nic::PathInfo* path = endpoint.limits().path(endpoint.qp().path());
  return path == nullptr || !path->shared_only || region.shared();
}

Result<Flag> Flag::create(nic::Context& context) { return Flag(LACUNA_TRY(nic::RegisteredBuffer::create(context, sizeof(std::uint64_t)))); }

nic::SendRequest Flag::raise(const Endpoint& endpoint, const Target::Part& peers) {
  *word() = transfers_;
  return {.opcode = nic::Opcode::write,
          .sg_list = {&sge_, 1},
          .remote_addr = peers.addr,
          .rkey = peers.rkey,
          .inline_data = std::cmp_greater_equal(endpoint.limits().max_inline, sizeof(std::uint64_t))};
}

}  // namespace lacuna::method
