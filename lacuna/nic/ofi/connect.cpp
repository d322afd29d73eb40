// How two queue pairs find one another. Each end says who it is, what it can do and where its endpoints are reached;
// endpoints that are connected (FI_EP_MSG) then connect: the end with the larger nonce listens. At last both ends greet
// one another. After each of the steps each end says whether it worked.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <type_traits>
#include <utility>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/ofi/queue_pair.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::uint64_t kMagic = 0x3230'6966'6f61'636c;
constexpr std::int64_t kTimeout = 60'000'000'000;  // ns for the peer to do its part
constexpr unsigned kPause = 100;                   // us between two looks for an event
constexpr std::size_t kMostAddress = 128;          // bytes of an endpoint's

using Nonce = std::array<unsigned char, 16>;

struct Address {
  std::uint64_t bytes = 0;
  std::array<char, kMostAddress> text{};
};

struct Introduction {
  std::uint64_t magic = kMagic;
  std::uint32_t pointer_bytes = sizeof(void*);
  std::uint32_t kind = 0;  // fi_ep_type
  std::array<char, 32> provider{};
  LimitsOnWire limits;
  Nonce nonce{};
  std::array<char, 40> boot{};  // of the operating system: ends with the same one have the same clock
  Address data;                 // of endpoints that are connected, where this end listens
  Address talk;
};
static_assert(std::has_unique_object_representations_v<LimitsOnWire> && std::is_trivially_copyable_v<Introduction>);
static_assert(std::has_unique_object_representations_v<Introduction>);

// What the connecting end says with each of its two requests.
struct Claim {
  Nonce nonce;  // of the listening end
  std::uint32_t endpoint;
};
constexpr std::uint32_t kData = 1;
constexpr std::uint32_t kTalk = 2;

std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), 36);
  return id;
}

Result<Introduction> introduction_of(const Hello& hello, const Introduction& mine) {
  Introduction theirs;
  if (hello.bytes.size() != sizeof theirs) return base::fail(base::Code::malformed, "the peer's introduction is not one of NIC ofi");
  std::memcpy(static_cast<void*>(&theirs), hello.bytes.data(), sizeof theirs);
  if (theirs.magic == __builtin_bswap64(kMagic))
    return base::fail(base::Code::unsupported, "the peer's machine has the other byte order; both ends need the same");
  if (theirs.magic != kMagic) return base::fail(base::Code::malformed, "the peer runs another version of NIC ofi");
  if (theirs.pointer_bytes != mine.pointer_bytes)
    return base::fail(base::Code::unsupported, fmt::format("the peer's addresses have {} bytes, this end's {}; both ends need the same",
                                                           theirs.pointer_bytes, mine.pointer_bytes));
  theirs.provider.back() = '\0';
  if (theirs.provider != mine.provider || theirs.kind != mine.kind)
    return base::fail(base::Code::unsupported, fmt::format("this end uses libfabric's {}, the peer {}; LACUNA_NIC=ofi:NAME at both ends "
                                                           "names the same",
                                                           mine.provider.data(), theirs.provider.data()));
  if (theirs.data.bytes > kMostAddress || theirs.talk.bytes > kMostAddress)
    return base::fail(base::Code::malformed, "the peer's addresses are none");
  if (theirs.data.bytes == 0) return base::fail(base::Code::unsupported, "the peer has no endpoint");
  return theirs;
}

/// Makes the two endpoints of a queue pair, and connects them.
class Meeting {
 public:
  Meeting(const Provider& provider, QueuePair& pair) : provider_(provider), pair_(pair), ends_(pair.ends()) {}

  /// Before this end has heard of the other one. Errors: those of libfabric.
  Result<void> prepare(Introduction& mine);
  Result<void> connect(const Introduction& mine, const Introduction& theirs);

 private:
  std::unexpected<base::Error> failed(const char* call, long returned) const {
    return std::unexpected(failure(provider_.library(), fmt::format("{} of {}", call, provider_.name()), returned));
  }
  Result<void> listen(Address& address);
  Result<void> make(Endpoint& endpoint, fi_info& info);
  Result<Address> name_of(fid_t object) const;
  Result<void> meet(Endpoint& endpoint, const Address& address) const;
  Result<void> dial(Endpoint& endpoint, const Address& address, const Claim& claim);
  Result<void> answer(const Nonce& nonce, std::int64_t deadline);
  /// The next event. Errors: timeout; those that the provider tells.
  Result<std::uint32_t> event(std::int64_t deadline, std::vector<std::byte>& entry) const;

  const Provider& provider_;
  QueuePair& pair_;
  QueuePair::Ends& ends_;
  Owned<fid_pep> listener_;
};

Result<Address> Meeting::name_of(fid_t object) const {
  Address address;
  std::size_t bytes = kMostAddress;
  if (const int error = fi_getname(object, address.text.data(), &bytes); error != 0) return failed("fi_getname", error);
  address.bytes = bytes;
  return address;
}

// Enabled, with receives posted on the one that both ends talk on.
Result<void> Meeting::make(Endpoint& endpoint, fi_info& info) {
  fid_ep* made = nullptr;
  if (const int error = fi_endpoint(provider_.domain(), &info, &made, nullptr); error != 0) return failed("fi_endpoint", error);
  endpoint.endpoint.reset(made);
  if (provider_.connected()) {
    if (const int error = fi_ep_bind(made, &ends_.events->fid, 0); error != 0) return failed("fi_ep_bind", error);
  } else {
    fi_av_attr wanted{};
    wanted.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    if (const int error = fi_av_open(provider_.domain(), &wanted, &addresses, nullptr); error != 0) return failed("fi_av_open", error);
    endpoint.addresses.reset(addresses);
    if (const int error = fi_ep_bind(made, &addresses->fid, 0); error != 0) return failed("fi_ep_bind", error);
  }
  if (const int error = fi_ep_bind(made, &pair_.queue().get()->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION); error != 0)
    return failed("fi_ep_bind", error);
  if (const int error = fi_enable(made); error != 0) return failed("fi_enable", error);
  if (&endpoint == &ends_.talk) LACUNA_TRY(pair_.control().open(endpoint));
  return {};
}

Result<void> Meeting::listen(Address& address) {
  fi_eq_attr wanted{};
  wanted.wait_obj = FI_WAIT_UNSPEC;
  fid_eq* events = nullptr;
  if (const int error = fi_eq_open(provider_.fabric(), &wanted, &events, nullptr); error != 0) return failed("fi_eq_open", error);
  ends_.events.reset(events);
  fid_pep* listener = nullptr;
  if (const int error = fi_passive_ep(provider_.fabric(), &provider_.info(), &listener, nullptr); error != 0)
    return failed("fi_passive_ep", error);
  listener_.reset(listener);
  if (const int error = fi_pep_bind(listener, &events->fid, 0); error != 0) return failed("fi_pep_bind", error);
  if (const int error = fi_listen(listener); error != 0) return failed("fi_listen", error);
  address = LACUNA_TRY(name_of(&listener->fid));
  return {};
}

Result<void> Meeting::prepare(Introduction& mine) {
  LACUNA_TRY(pair_.make_control());
  if (provider_.connected()) return listen(mine.data);
  LACUNA_TRY(make(ends_.data, provider_.info()));
  LACUNA_TRY(make(ends_.talk, provider_.info()));
  mine.data = LACUNA_TRY(name_of(&ends_.data.endpoint->fid));
  mine.talk = LACUNA_TRY(name_of(&ends_.talk.endpoint->fid));
  return {};
}

Result<void> Meeting::meet(Endpoint& endpoint, const Address& address) const {
  const int inserted = fi_av_insert(endpoint.addresses.get(), address.text.data(), 1, &endpoint.peer, 0, nullptr);
  if (inserted != 1) return failed("fi_av_insert", inserted < 0 ? inserted : -FI_EADDRNOTAVAIL);
  return {};
}

Result<std::uint32_t> Meeting::event(std::int64_t deadline, std::vector<std::byte>& entry) const {
  for (;; usleep(kPause)) {
    std::uint32_t kind = 0;
    entry.assign(sizeof(fi_eq_cm_entry) + sizeof(Claim), std::byte{});
    const ssize_t found = fi_eq_read(ends_.events.get(), &kind, entry.data(), entry.size(), 0);
    if (std::cmp_greater_equal(found, sizeof(fi_eq_cm_entry))) {
      entry.resize(static_cast<std::size_t>(found));
      return kind;
    }
    if (found == -FI_EAVAIL) {
      fi_eq_err_entry error{};
      fi_eq_readerr(ends_.events.get(), &error, 0);
      return failed("connecting", -(error.err == 0 ? FI_EOTHER : error.err));
    }
    if (found != -FI_EAGAIN) return failed("fi_eq_read", found < 0 ? found : -FI_EOTHER);
    if (base::now_ns() > deadline) return base::fail(base::Code::timeout, "the peer did not connect its endpoints");
  }
}

Result<void> Meeting::dial(Endpoint& endpoint, const Address& address, const Claim& claim) {
  const Info info(provider_.library().dupinfo(&provider_.info()), provider_.library().freeinfo);
  if (!info) return base::fail(base::Code::out_of_memory, "fi_dupinfo");
  LACUNA_TRY(make(endpoint, *info));
  if (const int error = fi_connect(endpoint.endpoint.get(), address.text.data(), &claim, sizeof claim); error != 0)
    return failed("fi_connect", error);
  std::vector<std::byte> entry;
  if (LACUNA_TRY(event(base::now_ns() + kTimeout, entry)) != FI_CONNECTED)
    return base::fail(base::Code::peer_lost, "the peer refuses the connection");
  return {};
}

// Takes the two connections of the peer, in any order; a stranger's are refused.
Result<void> Meeting::answer(const Nonce& nonce, std::int64_t deadline) {
  std::vector<std::byte> entry;
  for (int connected = 0; connected < 2;) {
    const std::uint32_t kind = LACUNA_TRY(event(deadline, entry));
    if (kind == FI_CONNECTED) ++connected;
    if (kind == FI_SHUTDOWN) return base::fail(base::Code::peer_lost, "the peer closed a connection at once");
    if (kind != FI_CONNREQ) continue;
    fi_eq_cm_entry request{};
    std::memcpy(&request, entry.data(), sizeof request);
    const Info info(request.info, provider_.library().freeinfo);
    Claim claim{};
    if (entry.size() >= sizeof request + sizeof claim) std::memcpy(&claim, entry.data() + sizeof request, sizeof claim);
    Endpoint& endpoint = claim.endpoint == kTalk ? ends_.talk : ends_.data;
    if (claim.nonce != nonce || claim.endpoint < kData || claim.endpoint > kTalk || endpoint.endpoint) {
      fi_reject(listener_.get(), info->handle, nullptr, 0);
      continue;
    }
    LACUNA_TRY(make(endpoint, *info));
    if (const int error = fi_accept(endpoint.endpoint.get(), nullptr, 0); error != 0) return failed("fi_accept", error);
  }
  return {};
}

Result<void> Meeting::connect(const Introduction& mine, const Introduction& theirs) {
  if (!provider_.connected()) {
    LACUNA_TRY(meet(ends_.data, theirs.data));
    return meet(ends_.talk, theirs.talk);
  }
  if (mine.nonce == theirs.nonce) return base::fail(base::Code::malformed, "the peer repeats this end's introduction");
  if (mine.nonce > theirs.nonce) {
    LACUNA_TRY(answer(mine.nonce, base::now_ns() + kTimeout));
  } else {
    LACUNA_TRY(dial(ends_.data, theirs.data, {theirs.nonce, kData}));
    LACUNA_TRY(dial(ends_.talk, theirs.data, {theirs.nonce, kTalk}));
  }
  listener_.reset();
  return {};
}

Result<void> greet(QueuePair& pair) {
  for (const std::int64_t deadline = base::now_ns() + kTimeout; !pair.greeted(); usleep(kPause)) {
    pair.queue().progress();
    if (base::now_ns() > deadline) return base::fail(base::Code::timeout, "the peer says nothing on its endpoint");
  }
  return {};
}

// While this end waits for what the peer says, others are answered.
class Unlocking final : public Bootstrap {
 public:
  Unlocking(Bootstrap& real, std::unique_lock<std::recursive_mutex>& lock) : real_(real), lock_(lock) {}
  Result<Hello> exchange(const Hello& mine, std::int64_t timeout_ns) override {
    if (!lock_) return real_.exchange(mine, timeout_ns);
    lock_.unlock();
    Result<Hello> theirs = real_.exchange(mine, timeout_ns);
    lock_.lock();
    return theirs;
  }

 private:
  Bootstrap& real_;
  std::unique_lock<std::recursive_mutex>& lock_;
};

Introduction introduce(const Provider& provider, const Limits& limits) {
  Introduction mine;
  mine.kind = static_cast<std::uint32_t>(provider.info().ep_attr->type);
  provider.name().copy(mine.provider.data(), mine.provider.size() - 1);
  mine.limits = LimitsOnWire::of(limits);
  mine.boot = boot_id();
  std::random_device random;
  for (unsigned char& byte : mine.nonce) byte = static_cast<unsigned char>(random());
  return mine;
}

}  // namespace

Result<std::unique_ptr<nic::QueuePair>> Context::connect(Bootstrap& outside, nic::CompletionQueue& queue, const QueuePairOptions& options) {
  const PathInfo* path = limits_.path(options.path);
  if (path == nullptr) return base::fail(base::Code::unsupported, fmt::format("NIC {} has no path {}", name_, path_name(options.path)));
  LACUNA_TRY(check_depths(options, limits_, name_));
  auto lock = used();
  Unlocking bootstrap(outside, lock);
  auto pair = std::make_unique<QueuePair>(*this, static_cast<CompletionQueue&>(queue), options);
  Meeting meeting(*provider_, *pair);
  Introduction mine = introduce(*provider_, limits_);

  // Also an end that has no endpoint speaks, or the peer would wait for it.
  Result<void> prepared = meeting.prepare(mine);
  if (!path->available) prepared = base::fail(base::Code::unsupported, fmt::format("path {}: {}", path_name(options.path), path->note));
  if (!prepared) mine.data.bytes = 0;
  Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const Hello answer = LACUNA_TRY(bootstrap.exchange(hello, kTimeout));

  Introduction theirs;
  Limits limits;
  const auto check = [&]() -> Result<void> {
    LACUNA_TRY(prepared);
    theirs = LACUNA_TRY(introduction_of(answer, mine));
    limits = common(limits_, LACUNA_TRY(theirs.limits.read()));
    limits.shared_clock = mine.boot[0] != 0 && mine.boot == theirs.boot;
    return {};
  };
  LACUNA_TRY(agree(bootstrap, check(), options.path, kTimeout));  // else one end would wait for the other to connect
  LACUNA_TRY(agree(bootstrap, meeting.connect(mine, theirs), options.path, kTimeout));
  pair->watch(answer.process);
  pair->open(std::move(limits));
  LACUNA_TRY(agree(bootstrap, greet(*pair), options.path, kTimeout));
  return std::unique_ptr<nic::QueuePair>(std::move(pair));
}

}  // namespace lacuna::nic::ofi
