#include "lacuna/nixl/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::nixl {
namespace {

using nic::tcp::kDigestBytes;

constexpr std::uint32_t kMagic = 0x3158'4e4c;  // "LNX1"; changes with what follows, and with what agents say

void put_text(std::string& out, std::string_view text) {
  nic::tcp::put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Of bytes that may end anywhere.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}
  Result<std::uint32_t> number() {
    if (left_.size() < sizeof(std::uint32_t)) return ended();
    return nic::tcp::take(left_);
  }
  Result<std::string> bytes(std::size_t count) {
    if (left_.size() < count) return ended();
    return std::string(nic::tcp::take(left_, count));
  }
  Result<std::string> text(std::size_t most) {
    const std::uint32_t length = LACUNA_TRY(number());
    if (length > most) return base::fail(base::Code::malformed, fmt::format("a text of {} bytes; at most {}", length, most));
    return bytes(length);
  }
  [[nodiscard]] bool done() const { return left_.empty(); }

 private:
  static std::unexpected<base::Error> ended() { return base::fail(base::Code::malformed, "the address of an agent ends too early"); }
  std::string_view left_;
};

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = address.sa_family == AF_INET ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                                                   : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

std::string encode(const Address& address) {
  std::string out;
  nic::tcp::put(out, kMagic);
  out += address.machine + address.secret;
  nic::tcp::put(out, address.user);
  nic::tcp::put(out, address.port);
  put_text(out, address.nic);
  nic::tcp::put(out, static_cast<std::uint32_t>(address.hosts.size()));
  for (const std::string& host : address.hosts) put_text(out, host);
  return out;
}

Result<Address> decode_address(std::string_view text) {
  Reader in(text);
  if (LACUNA_TRY(in.number()) != kMagic)
    return base::fail(base::Code::malformed, "this is not the address of an agent with this version of Lacuna");
  Address address;
  address.machine = LACUNA_TRY(in.bytes(kDigestBytes));
  address.secret = LACUNA_TRY(in.bytes(kSecretBytes));
  address.user = LACUNA_TRY(in.number());
  const std::uint32_t port = LACUNA_TRY(in.number());
  address.port = static_cast<std::uint16_t>(port);
  if (port == 0 || port > UINT16_MAX) return base::fail(base::Code::malformed, fmt::format("port {}", port));
  address.nic = LACUNA_TRY(in.text(kMostNicBytes));
  const std::uint32_t hosts = LACUNA_TRY(in.number());
  if (hosts == 0 || hosts > kMostHosts) return base::fail(base::Code::malformed, fmt::format("{} hosts; 1 to {}", hosts, kMostHosts));
  for (std::uint32_t i = 0; i < hosts; ++i) address.hosts.push_back(LACUNA_TRY(in.text(kMostHostBytes)));
  if (!in.done()) return base::fail(base::Code::malformed, "more follows the address of an agent");
  return address;
}

std::vector<std::string> own_hosts() {
  std::vector<std::string> hosts;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, &freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      // What listens at all addresses of IPv4 listens at no other
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) != 0 ||
          (one->ifa_flags & IFF_UP) == 0)
        continue;
      if (hosts.size() + 1 < kMostHosts) hosts.push_back(text_of(*one->ifa_addr));
    }
  }
  hosts.emplace_back("127.0.0.1");
  return hosts;
}

std::string at_port(std::string_view host, std::uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

bool is_loopback(std::string_view host) { return host.starts_with("127.") || host == "::1"; }

}  // namespace lacuna::nixl
