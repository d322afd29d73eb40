#include "lacuna/protocol/bootstrap/handshake.hpp"

namespace lacuna::protocol::bootstrap {
namespace {

constexpr nic::tcp::Purpose kGroup{0x324e434c, "group"};  // "LCN2"; changes with what follows the handshake

}  // namespace

bool challenge(Caller& caller) { return nic::tcp::challenge(kGroup, caller); }

Claim claim_of(std::string_view request) {
  std::string_view bytes = nic::tcp::claim_of(request);
  Claim claim;
  for (std::uint32_t* field : {&claim.size, &claim.rank, &claim.to, &claim.user, &claim.port}) *field = nic::tcp::take(bytes);
  claim.machine = nic::tcp::take(bytes, kDigestBytes);
  claim.group_id = nic::tcp::take(bytes, kDigestBytes);
  return claim;
}

Result<Claim> verify(const Secret& secret, const Caller& caller) {
  LACUNA_TRY(nic::tcp::verify(secret, kGroup, caller));
  return claim_of(caller.request);
}

Result<void> introduce(int socket, const Secret& secret, const Claim& claim, std::int64_t deadline) {
  std::string bytes;
  for (const std::uint32_t field : {claim.size, claim.rank, claim.to, claim.user, claim.port}) nic::tcp::put(bytes, field);
  return nic::tcp::introduce(socket, secret, kGroup, bytes + claim.machine + claim.group_id, deadline);
}

}  // namespace lacuna::protocol::bootstrap
