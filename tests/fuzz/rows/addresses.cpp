// Cards and addresses: what a process says of itself once, by any means.
#include <cstring>

#include "lacuna/nic/local/card.hpp"
#include "lacuna/nixl/address.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::fuzz {
namespace {

using nic::local::CardText;

// --- cards of NIC local ---

Bytes draw_card(Random& random) { return draw_edits(random, sizeof(CardText)); }

// Its memory is reached within its bounds, if at all. A planted fault: an address within is thought beyond.
Verdict judge_card(const Bytes& input, bool planted) {
  struct Ends {
    std::unique_ptr<nic::Context> own = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
    std::unique_ptr<nic::Context> other = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
    nic::RegisteredBuffer buffer = support::value(nic::RegisteredBuffer::create(*other, 4096));
    nic::Card card = support::value(other->card());
  };
  static Ends ends;
  nic::Card card = ends.card;
  std::vector<std::byte> text(sizeof(CardText));
  std::memcpy(text.data(), card.bytes.data(), text.size());
  edit(input, text);
  text.resize(sizeof(CardText));
  std::memcpy(card.bytes.data(), text.data(), text.size());
  const auto peer = ends.own->attach(card);
  if (!peer) return {.taken = false, .wrong = peer.error().text().empty() ? "an error that says nothing" : ""};
  const std::uint64_t addr = ends.buffer.region.addr();
  const std::uint32_t key = ends.buffer.region.rkey();
  if ((*peer)->rkey_ptr(addr, key, planted ? 4096 : 1 << 30) != nullptr)
    return {.taken = true, .wrong = "memory is reached beyond its end"};
  const std::byte* const there = (*peer)->rkey_ptr(addr, key, 4096);
  if (there == nullptr) return {.taken = true, .wrong = {}};
  volatile std::byte sink = there[0];  // it can be read
  sink = there[4095];
  (void)sink;
  return {.taken = true, .wrong = {}};
}

// --- addresses of agents ---

Bytes draw_address(Random& random) {
  static const std::vector<Bytes> seeds = [] {
    nixl::Address address{.machine = std::string(32, 'm'),
                          .user = 1000,
                          .secret = std::string(nixl::kSecretBytes, 's'),
                          .port = 4711,
                          .hosts = {"10.0.0.1", "127.0.0.1", "fe80::1"},
                          .nic = "ofi:tcp"};
    std::vector<Bytes> made{encode(address)};
    address.hosts.resize(1);
    address.nic = "";
    made.push_back(encode(address));
    return made;
  }();
  return mutated(random, seeds);
}

// Within its limits, and encoded as it came. A planted fault: a limit that is none.
Verdict judge_address(const Bytes& input, bool planted) {
  const auto address = nixl::decode_address(input);
  if (!address) return {.taken = false, .wrong = address.error().code == base::Code::malformed ? "" : address.error().text()};
  const std::size_t most_hosts = planted ? 2 : nixl::kMostHosts;
  bool good = address->port != 0 && address->nic.size() <= nixl::kMostNicBytes && address->hosts.size() <= most_hosts &&
              address->secret.size() == nixl::kSecretBytes;
  for (const std::string& host : address->hosts) good = good && host.size() <= nixl::kMostHostBytes;
  if (!good) return {.taken = true, .wrong = "an address beyond its limits"};
  return {.taken = true, .wrong = encode(*address) == input ? "" : "what it means is not what came"};
}

}  // namespace

Fuzzer local_card() {
  return {.name = "local_card",
          .what = "cards of NIC local, by which processes of a machine reach one another's memory",
          .smoke = 20'000,
          .least_taken = 0.05,
          .draw = draw_card,
          .judge = judge_card};
}
Fuzzer nixl_address() {
  return {.name = "nixl_address",
          .what = "addresses of NIXL's agents, from their metadata",
          .smoke = 500'000,
          .least_taken = 0.1,
          .draw = draw_address,
          .judge = judge_address};
}

}  // namespace lacuna::fuzz
