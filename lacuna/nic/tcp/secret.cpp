#include "lacuna/nic/tcp.hpp"

#include <sodium.h>

namespace lacuna::nic::tcp {
namespace {

static_assert(kProofBytes == crypto_auth_BYTES && kDigestBytes == crypto_generichash_BYTES);

const unsigned char* raw(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

Result<Secret> Secret::create(std::string_view secret) {
  if (sodium_init() < 0) return base::fail(base::Code::unsupported, "libsodium finds no source of random numbers here");
  Secret result;
  static_assert(sizeof result.key_ == crypto_auth_KEYBYTES);
  crypto_generichash(result.key_.data(), result.key_.size(), raw(secret), secret.size(), nullptr, 0);
  return result;
}

Secret::~Secret() { sodium_memzero(key_.data(), key_.size()); }

std::string Secret::prove(std::string_view text) const {
  std::string proof(kProofBytes, '\0');
  crypto_auth(raw(proof), raw(text), text.size(), key_.data());
  return proof;
}

bool Secret::proves(std::string_view proof, std::string_view text) const {
  return proof.size() == kProofBytes && crypto_auth_verify(raw(proof), raw(text), text.size(), key_.data()) == 0;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), count);
  return bytes;
}

std::string digest(std::string_view text) {
  std::string result(kDigestBytes, '\0');
  crypto_generichash(raw(result), result.size(), raw(text), text.size(), nullptr, 0);
  return result;
}

}  // namespace lacuna::nic::tcp
