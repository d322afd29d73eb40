#include "lacuna/nixl/meeting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>

namespace lacuna::nixl {
namespace {

using base::Code;
using nic::tcp::Caller;
using nic::tcp::Purpose;
using nic::tcp::Secret;
using nic::tcp::TcpBootstrap;
using protocol::Communicator;
using protocol::Group;

constexpr Purpose kPurpose{0x3158'4e4c, "agent with the LACUNA plug-in"};  // "LNX1"
constexpr std::size_t kNameBytes = 32;                                     // of a group, in hexadecimal digits
constexpr std::size_t kClaimBytes = kMostNicBytes + kNameBytes;

struct Claim {
  std::string nic;
  std::string group;  // empty: over the connection itself
};

std::string padded(std::string_view text, std::size_t bytes) {
  std::string field(text);
  field.resize(bytes, '\0');
  return field;
}
std::string unpadded(std::string_view field) { return std::string(field.substr(0, std::min(field.find('\0'), field.size()))); }

std::string fresh_name() {
  std::string name;
  for (const char byte : nic::tcp::random_bytes(kNameBytes / 2)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

nic::Hello hello_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {.bytes = {bytes.begin(), bytes.end()}, .files = {}, .process = 0};
}

// What the peer says, short, and harmless to a terminal.
Result<std::string> exchange(nic::Bootstrap& bootstrap, std::string_view mine, std::int64_t deadline) {
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(hello_of(mine), std::max<std::int64_t>(deadline - base::now_ns(), 0)));
  if (theirs.bytes.size() > kMostNameBytes)
    return base::fail(Code::malformed, fmt::format("the peer says {} bytes; at most {}", theirs.bytes.size(), kMostNameBytes));
  return std::string(reinterpret_cast<const char*>(theirs.bytes.data()), theirs.bytes.size());
}

// Another one's.
class Borrowed final : public nic::Bootstrap {
 public:
  explicit Borrowed(nic::Bootstrap& lender) : lender_(lender) {}
  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override { return lender_.exchange(mine, timeout_ns); }

 private:
  nic::Bootstrap& lender_;
};

// Both open their NIC, and either may say that it cannot; then they are a group of two.
Result<Connection::Ends> join(std::unique_ptr<TcpBootstrap> bootstrap, int rank, const Claim& claim, std::int64_t deadline) {
  Result<std::unique_ptr<nic::Context>> context = nic::open(claim.nic);
  const std::string mine = context ? "" : context.error().text().substr(0, kMostNameBytes);
  const std::string theirs = LACUNA_TRY(exchange(*bootstrap, mine, deadline));
  if (!context) return std::unexpected(std::move(context).error());
  if (!theirs.empty())
    return base::fail(Code::unsupported, fmt::format("the peer does not take NIC {}, or no other agent: {}", claim.nic, printable(theirs)));

  const std::int64_t left = std::max<std::int64_t>(deadline - base::now_ns(), 0);
  Group group{.rank = rank, .one_machine = false};
  if (!claim.group.empty()) {
    group = LACUNA_TRY(
        protocol::form_group({.address = claim.group, .size = 2, .rank = rank, .timeout_s = static_cast<double>(left) / kNsPerSecond}));
  } else {
    group.peers.resize(2);
    group.peers[static_cast<std::size_t>(1 - rank)] = std::move(bootstrap);
  }
  const protocol::Options options = LACUNA_TRY(protocol::Options::from_environment({.timeout_ns = left}));
  // What connects the two connects them twice
  auto& peer = group.peers[static_cast<std::size_t>(1 - rank)];
  Connection::Ends ends{.context = std::move(*context), .bootstrap = std::move(peer), .ranks = nullptr, .direct = nullptr};
  peer = std::make_unique<Borrowed>(*ends.bootstrap);
  const std::string nic(ends.context->nic_name());
  ends.ranks = LACUNA_TRY(Communicator::create(*ends.context, nic, std::move(group), options));
  ends.direct = LACUNA_TRY(Direct::connect(*ends.context, *ends.bootstrap, left));
  return ends;
}

// On one machine the loopback, on another one the others; all, where there is no other.
std::vector<std::string> hosts_to_try(const Address& there, bool one_machine) {
  std::vector<std::string> hosts;
  std::ranges::copy_if(there.hosts, std::back_inserter(hosts), [&](const std::string& host) { return is_loopback(host) == one_machine; });
  return hosts.empty() ? there.hosts : hosts;
}

Result<base::Fd> call_at(const std::string& place, const Secret& secret, const Claim& claim, std::int64_t deadline) {
  const auto endpoints = LACUNA_TRY(nic::tcp::resolve(place));
  base::Fd socket = LACUNA_TRY(nic::tcp::connect_to(endpoints.front(), deadline));
  LACUNA_TRY(
      nic::tcp::introduce(socket.get(), secret, kPurpose, padded(claim.nic, kMostNicBytes) + padded(claim.group, kNameBytes), deadline));
  return socket;
}

// Hosts share the time that is left: one that does not answer leaves some to the next.
Result<base::Fd> call(const Address& there, bool one_machine, const Secret& secret, const Claim& claim, std::int64_t deadline) {
  base::Error last{Code::malformed, "the agent tells no address"};
  const std::vector<std::string> hosts = hosts_to_try(there, one_machine);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string place = at_port(hosts[i], there.port);
    const std::int64_t now = base::now_ns(), share = (deadline - now) / static_cast<std::int64_t>(hosts.size() - i);
    Result<base::Fd> socket = call_at(place, secret, claim, now + share);
    if (socket) return socket;
    last = {socket.error().code, fmt::format("{}: {}", place, socket.error().message)};
  }
  return std::unexpected(last);
}

}  // namespace

std::size_t meeting_request_bytes() { return nic::tcp::request_bytes(kClaimBytes); }
bool greet_meeting(Caller& caller) { return nic::tcp::challenge(kPurpose, caller); }

Result<Connection::Ends> meet_first(const std::string& own_name, const std::string& agent, const Address& there, const std::string& nic,
                                    std::int64_t timeout_ns) {
  const std::int64_t deadline = base::now_ns() + timeout_ns;
  const Secret secret = LACUNA_TRY(Secret::create(there.secret));
  const bool one_machine = there.machine == nic::tcp::machine_identity();
  const bool by_name = one_machine && there.user == geteuid();
  const Claim claim{.nic = nic, .group = by_name ? fresh_name() : ""};
  base::Fd socket = LACUNA_TRY(call(there, one_machine, secret, claim, deadline));
  nic::tcp::send_at_once(socket.get());
  auto bootstrap = std::make_unique<TcpBootstrap>(std::move(socket));
  const std::string name = LACUNA_TRY(exchange(*bootstrap, own_name, deadline));
  if (name != agent) return base::fail(Code::malformed, fmt::format("agent {} listens there", printable(name)));
  return join(std::move(bootstrap), 0, claim, deadline);
}

Result<Guest> meet_second(const std::string& own_name, const Secret& secret, Caller caller, const House& house, std::int64_t timeout_ns) {
  const std::int64_t deadline = base::now_ns() + timeout_ns;
  const std::string said = LACUNA_TRY(nic::tcp::verify(secret, kPurpose, caller));
  const Claim claim{.nic = unpadded(said.substr(0, kMostNicBytes)), .group = unpadded(said.substr(kMostNicBytes))};
  nic::tcp::send_at_once(caller.socket.get());
  auto bootstrap = std::make_unique<TcpBootstrap>(std::move(caller.socket));
  // An address of another kind would send this process elsewhere
  if (!std::ranges::all_of(claim.group, [](char digit) { return std::string_view("0123456789abcdef").contains(digit); }))
    return base::fail(Code::malformed, "a group's name consists of hexadecimal digits");
  Guest guest{.name = LACUNA_TRY(exchange(*bootstrap, own_name, deadline)), .ends = {}};
  if (!house.refusal.empty()) {
    LACUNA_TRY(exchange(*bootstrap, house.refusal, deadline));
    return base::fail(Code::limit, fmt::format("agent {} is refused: {}", printable(guest.name), house.refusal));
  }
  if (!house.nic.empty() && house.nic != claim.nic) {
    const std::string why = fmt::format("this agent takes NIC {} only", house.nic);
    LACUNA_TRY(exchange(*bootstrap, why, deadline));
    return base::fail(Code::invalid_argument,
                      fmt::format("agent {} comes by NIC {}; {}", printable(guest.name), printable(claim.nic), why));
  }
  guest.ends = LACUNA_TRY(join(std::move(bootstrap), 1, claim, deadline));
  return guest;
}

Result<Connection::Ends> meet_alone() {
  Connection::Ends ends{.context = LACUNA_TRY(nic::open("local")), .bootstrap = nullptr, .ranks = nullptr, .direct = nullptr};
  Group group{.rank = 0};
  group.peers.resize(1);
  ends.ranks = LACUNA_TRY(Communicator::create(*ends.context, std::string(ends.context->nic_name()), std::move(group)));
  return ends;
}

}  // namespace lacuna::nixl
