// Makes the parts of a communicator, connects them with the peers', and ends them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

constexpr int kSpins = 64;

Registrations::Options registering(const Options& options, std::function<Result<void>(const nic::Region&)> forget) {
  return {.keep = options.registering != Registering::copy && options.registering != Registering::pipeline,
          .most_bytes = options.registered_bytes,
          .most = options.registered_entries,
          .forget = std::move(forget)};
}

Options possible(Options options) {
  options.eager_bytes = std::clamp<std::int64_t>(options.eager_bytes, 0, kMostPayload);
  return options;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(nic::Context& context, const std::string& nic, Group group, Options options) {
  auto parts = std::make_unique<Parts>(context, nic, group, std::move(options));
  LACUNA_TRY(parts->connect(std::move(group)));
  return std::unique_ptr<Communicator>(new Communicator(std::move(parts)));
}

Communicator::Communicator(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Communicator::~Communicator() = default;

Communicator::Parts::Parts(nic::Context& context, const std::string& nic, const Group& group, Options options)
    : registrations_(context, registering(options, [this](const nic::Region& region) { return rendezvous.forget(region); })),
      local(context, group.rank, group.size(), possible(std::move(options))),
      choices(context, nic, local.options),
      completion(local),
      self(local, completion),
      streams(local, completion),
      rendezvous(local, completion, registrations_, choices),
      sends(local, completion, choices.messages(), self, streams, rendezvous),
      receives(local, completion, self, streams, rendezvous),
      accesses(local, completion, sends),
      dispatch(completion, receives, streams, rendezvous, accesses),
      progress(local, completion, dispatch, sends, streams, rendezvous, accesses),
      offers(local, completion, choices, streams, progress) {}

// Pairs connect in one order everywhere, so that no ranks wait in a circle.
Result<void> Communicator::Parts::connect(Group group) {
  local.peers.resize(static_cast<std::size_t>(group.size()));
  if (group.hub > 0) local.hub = LACUNA_TRY(HubChannels::create(local.context));
  for (int rank = 0; group.hub == 0 && rank < group.size(); ++rank) {
    Peer& peer = local.make(rank);
    if (!group.cards.empty() || rank == local.rank) continue;
    peer.bootstrap = std::move(group.peers[static_cast<std::size_t>(rank)]);
    LACUNA_TRY(connect(peer));
  }
  local.cards = std::move(group.cards);
  streams.force_stores();
  // What reaches one reaches all: a system that forbids it says so now, and not in the middle of a message.
  if (local.cards.size() > 1) LACUNA_TRY(local.attach(local.peer((local.rank + 1) % local.size())));
  if (!local.cards.empty() ||
      std::ranges::any_of(local.known(), [](const Peer& peer) { return peer.channel != nullptr && peer.channel->shares_memory(); }))
    progress.spin(kSpins);
  if (local.options.progress_thread) base::without_signals([&] { thread_ = std::thread([this] { run_thread(); }); });
  return {};
}

Result<void> Communicator::Parts::connect(Peer& peer) {
  nic::Context& context = local.context;
  const nic::Limits& limits = context.limits();
  const auto available = [&](nic::Path path) { return limits.path(path) != nullptr && limits.path(path)->available; };
  if (available(nic::Path::mapped)) {
    peer.channel = LACUNA_TRY(make_ring_channel(context, *peer.bootstrap));
  } else {
    constexpr std::array kInOrder{nic::Path::wire, nic::Path::slots, nic::Path::kernel};
    const auto path = std::ranges::find_if(kInOrder, available);
    if (path == kInOrder.end()) return base::fail(base::Code::unsupported, "this NIC has no path that takes messages");
    peer.channel = LACUNA_TRY(make_queue_channel(context, *peer.bootstrap, *path));
  }
  LACUNA_TRY(agree(peer));
  if (local.options.wrap_channel) peer.channel = local.options.wrap_channel(std::move(peer.channel));
  const bool first = local.rank < peer.rank;
  const RendezvousLine::Connect make = [&](nic::Path path, int /*number*/, const method::Endpoint::Options& options) {
    return method::Endpoint::connect(context, *peer.bootstrap, path, options);
  };
  LACUNA_TRY((first ? peer.outgoing : peer.incoming).connect(limits, make));
  LACUNA_TRY((first ? peer.incoming : peer.outgoing).connect(limits, make));
  peer.copies = peer.copying(true) != nullptr;
  return {};
}

// What both ends have to know of one another, and whether they speak the same language.
Result<void> Communicator::Parts::agree(Peer& peer) const {
  struct Terms {
    std::uint64_t magic = 0x3630'6c6f'636f'7470;  // changes with channel/head.hpp and RingDescriptor
    std::int64_t room = 0;
  };
  const Terms mine{.room = local.options.unexpected_bytes};
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const nic::Hello answer = LACUNA_TRY(peer.bootstrap->exchange(hello, local.options.timeout_ns));
  Terms theirs;
  if (answer.bytes.size() == sizeof theirs) std::memcpy(&theirs, answer.bytes.data(), sizeof theirs);
  if (answer.bytes.size() != sizeof theirs || theirs.magic != mine.magic || theirs.room < 0)
    return base::fail(base::Code::malformed, fmt::format("rank {} speaks another version of the protocol", peer.rank));
  peer.credit.grant(theirs.room);
  return {};
}

Communicator::Parts::~Parts() {
  if (thread_.joinable()) {
    stop_ = true;
    thread_.join();
  }
  progress.close();
  for (Peer& peer : local.known()) {
    peer.outgoing.transfers.clear();
    peer.incoming.transfers.clear();
    if (peer.channel == nullptr) continue;
    for (const nic::SharedBuffer& memory : local.pool.memory(peer.streams.rings)) peer.channel->keep(memory);
  }
  choices.save();
  local.requests.clear();  // their leases end before the registrations do
  registrations_.clear();  // while there are endpoints whose keys may stand for something
  local.matcher.each_message([](Matchable& message) { delete static_cast<Unexpected*>(&message); });
}

void Communicator::Parts::run_thread() {
  while (!stop_) {
    bool moved = false;
    {
      const std::unique_lock lock(mutex_);
      moved = progress.advance();
      if (!moved) progress.look_for_faults();
    }
    if (!moved) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace lacuna::protocol
