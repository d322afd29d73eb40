#include "lacuna/protocol/meeting/handshake.hpp"

#include <array>

#include "lacuna/protocol/meeting/message.hpp"

namespace lacuna::protocol::meeting {
namespace {

using base::Code;

constexpr std::uint32_t kMagic = 0x314e434c;  // "LCN1"
constexpr std::size_t kGreetingBytes = sizeof kMagic + kNonceBytes;

std::string encode(const Claim& claim) {
  std::string bytes;
  for (const std::uint32_t field : {kMagic, claim.size, claim.rank, claim.to, claim.user, claim.port}) put(bytes, field);
  return bytes + claim.machine + claim.meeting;
}

// All are of fixed length, so that no two different handshakes prove the same text.
std::string said(std::string_view side, std::string_view listeners_nonce, std::string_view claim_and_nonce) {
  std::string text(side);
  text += listeners_nonce;
  text += claim_and_nonce;
  return text;
}
constexpr std::string_view kListening = "listening ";
constexpr std::string_view kConnecting = "connecting";

std::unexpected<base::Error> other_secret() { return base::fail(Code::permission, "the other side has another secret"); }

}  // namespace

bool challenge(Caller& caller) {
  caller.challenge = random_bytes(kNonceBytes);
  std::string greeting;
  put(greeting, kMagic);
  return send_bytes(caller.socket.get(), greeting + caller.challenge, 0).has_value();
}

Claim claim_of(std::string_view request) {
  request.remove_prefix(sizeof kMagic);
  Claim claim;
  for (std::uint32_t* field : {&claim.size, &claim.rank, &claim.to, &claim.user, &claim.port}) *field = take(request);
  claim.machine = take(request, kDigestBytes);
  claim.meeting = take(request, kDigestBytes);
  return claim;
}

Result<Claim> verify(const Secret& secret, const Caller& caller) {
  std::string_view request = caller.request;
  std::string_view magic = request;
  if (take(magic) != kMagic) return base::fail(Code::malformed, "not the request of a process that wants to meet");
  const std::string_view claim_and_nonce = take(request, kClaimBytes + kNonceBytes);
  if (!secret.proves(request, said(kConnecting, caller.challenge, claim_and_nonce))) {
    tell(caller.socket.get(), {.kind = Kind::refused, .value = static_cast<int>(Code::permission)});
    return other_secret();
  }
  const std::string proof = secret.prove(said(kListening, caller.challenge, claim_and_nonce));
  LACUNA_TRY(send(caller.socket.get(), {.kind = Kind::welcome, .value = 0, .bytes = proof, .file = {}}, 0));
  return claim_of(caller.request);
}

Result<void> introduce(int socket, const Secret& secret, const Claim& claim, std::int64_t deadline) {
  std::array<char, kGreetingBytes> greeting;
  LACUNA_TRY(receive_bytes(socket, greeting, deadline));
  std::string_view nonce(greeting.data(), greeting.size());
  if (take(nonce) != kMagic) return base::fail(Code::malformed, "what listens there is no meeting");

  const std::string claim_and_nonce = encode(claim) + random_bytes(kNonceBytes);
  LACUNA_TRY(send_bytes(socket, claim_and_nonce + secret.prove(said(kConnecting, nonce, claim_and_nonce)), deadline));
  const Message answer = LACUNA_TRY(receive(socket, deadline));
  // Of a side that has proved nothing, only that it refuses is of interest, not its words.
  if (answer.kind == Kind::refused) return other_secret();
  if (answer.kind != Kind::welcome) return base::fail(Code::malformed, "what listens there is no meeting");
  if (!secret.proves(answer.bytes, said(kListening, nonce, claim_and_nonce))) return other_secret();
  return {};
}

}  // namespace lacuna::protocol::meeting
