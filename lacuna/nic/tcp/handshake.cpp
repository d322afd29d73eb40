#include <fmt/format.h>

#include <array>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::nic::tcp {
namespace {

using base::Code;

enum class Verdict : std::uint32_t { accepted = 1, refused = 2 };

// The sides, nonces and proofs are of fixed length, and a purpose has claims of one length: no two different handshakes
// prove the same text.
std::string said(std::string_view side, std::string_view listeners_nonce, std::string_view claim_and_nonce) {
  std::string text(side);
  text += listeners_nonce;
  text += claim_and_nonce;
  return text;
}
constexpr std::string_view kListening = "listening ";
constexpr std::string_view kConnecting = "connecting";

std::unexpected<base::Error> other_secret() { return base::fail(Code::permission, "the other side has another secret"); }

std::string answer(Verdict verdict, std::string_view proof) {
  std::string bytes;
  put(bytes, static_cast<std::uint32_t>(verdict));
  bytes += proof;
  return bytes;
}

}  // namespace

bool challenge(const Purpose& purpose, Caller& caller) {
  caller.challenge = random_bytes(kNonceBytes);
  std::string greeting;
  put(greeting, purpose.magic);
  return send_bytes(caller.socket.get(), greeting + caller.challenge, 0).has_value();
}

std::string_view claim_of(std::string_view request) {
  request.remove_prefix(sizeof(std::uint32_t));
  request.remove_suffix(kNonceBytes + kProofBytes);
  return request;
}

Result<std::string> verify(const Secret& secret, const Purpose& purpose, const Caller& caller) {
  std::string_view request = caller.request;
  std::string_view magic = request;
  if (take(magic) != purpose.magic) return base::fail(Code::malformed, fmt::format("not the request of a {}", purpose.name));
  const std::string_view claim_and_nonce = take(request, request.size() - kProofBytes);
  if (!secret.proves(request, said(kConnecting, caller.challenge, claim_and_nonce))) {
    [[maybe_unused]] const Result<void> told = send_bytes(caller.socket.get(), answer(Verdict::refused, std::string(kProofBytes, '\0')), 0);
    return other_secret();
  }
  const std::string proof = secret.prove(said(kListening, caller.challenge, claim_and_nonce));
  LACUNA_TRY(send_bytes(caller.socket.get(), answer(Verdict::accepted, proof), 0));
  return std::string(claim_of(caller.request));
}

Result<void> introduce(int socket, const Secret& secret, const Purpose& purpose, std::string_view claim, std::int64_t deadline) {
  const auto other_purpose = [&] { return base::fail(Code::malformed, fmt::format("what listens there is no {}", purpose.name)); };
  std::array<char, kGreetingBytes> greeting;
  LACUNA_TRY(receive_bytes(socket, greeting, deadline));
  std::string_view nonce(greeting.data(), greeting.size());
  if (take(nonce) != purpose.magic) return other_purpose();

  std::string claim_and_nonce;
  put(claim_and_nonce, purpose.magic);
  claim_and_nonce += claim;
  claim_and_nonce += random_bytes(kNonceBytes);
  LACUNA_TRY(send_bytes(socket, claim_and_nonce + secret.prove(said(kConnecting, nonce, claim_and_nonce)), deadline));
  std::array<char, kAnswerBytes> said_back;
  LACUNA_TRY(receive_bytes(socket, said_back, deadline));
  std::string_view proof(said_back.data(), said_back.size());
  switch (static_cast<Verdict>(take(proof))) {
    case Verdict::refused: return other_secret();
    case Verdict::accepted: break;
    default: return other_purpose();
  }
  if (!secret.proves(proof, said(kListening, nonce, claim_and_nonce))) return other_secret();
  return {};
}

}  // namespace lacuna::nic::tcp
