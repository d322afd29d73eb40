#include "tools/measure/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "tools/measure/proof.hpp"

namespace lacuna::measure {
namespace {

using method::Endpoint;
using method::Role;

constexpr std::int64_t kTimeout = 1'000'000'000'000;  // virtual ns: nothing takes so long
constexpr int kTransfers = 2;

double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

Result<void> barrier(nic::Bootstrap& bootstrap) {
  LACUNA_TRY(bootstrap.exchange({}, kTimeout));
  return {};
}

Result<method::Target> exchange(nic::Bootstrap& bootstrap, const method::Target& mine) {
  nic::Hello hello;
  hello.bytes = mine.encode();
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(hello, kTimeout));
  return method::Target::decode(theirs.bytes);
}

// A side's memory for one layout, with guards.
class Side {
 public:
  static Result<Side> create(nic::Context& context, const Layout& layout, std::int64_t span) {
    Side side(layout, span);
    side.memory_ = LACUNA_TRY(nic::RegisteredBuffer::create(context, span + 2 * kGuard));
    return side;
  }
  [[nodiscard]] std::byte* base() const { return memory_.buffer.data() + kGuard; }
  [[nodiscard]] method::Memory memory() const { return {&memory_.region}; }
  void write(std::span<const std::byte> stream) const { write_stream(layout_, base(), stream); }
  void clean() const {
    for (const CheckedRanges::CheckedRange& window : windows_.list()) lay_pattern({base() + window.from, base() + window.to});
  }
  [[nodiscard]] Result<void> check(std::span<const std::byte> stream) const {
    const std::string wrong = examine(layout_, base(), windows_, stream);
    if (!wrong.empty()) return base::fail(base::Code::transfer, wrong);
    return {};
  }

 private:
  Side(const Layout& layout, std::int64_t span) : layout_(layout), windows_(layout, span) {}
  Layout layout_;
  CheckedRanges windows_;
  nic::RegisteredBuffer memory_;
};

struct Times {
  std::int64_t began = 0, ended = 0, busy = 0, prepared = 0;
};

// One rank's part of a trial: two transfers, the second is timed.
struct End {
  Times times;
  method::Counters counters;

  Result<void> run(int rank, nic::World& world, const Trial& trial, bool verify) {
    nic::Context& context = world.context(rank);
    nic::Bootstrap& bootstrap = world.bootstrap(rank, 1 - rank);
    const auto endpoint = LACUNA_TRY(Endpoint::connect(context, bootstrap, nic::Path::wire));
    const bool sends = rank == 0;
    const Role role = sends ? Role::sender : Role::receiver;
    const Side side = LACUNA_TRY(sends ? Side::create(context, trial.what.send, trial.what.send_span)
                                       : Side::create(context, trial.what.receive, trial.what.receive_span));
    const std::int64_t before = context.now();
    const auto operation =
        LACUNA_TRY(method::make(*trial.method, role, *endpoint, {trial.what.send, trial.what.receive, trial.notify}, side.memory()));
    const bool told = !trial.method->uninformed(role, trial.notify);
    for (int i = 0; i < kTransfers; ++i) {
      std::vector<std::byte> stream;
      if (verify) {
        stream = stream_of(static_cast<std::uint64_t>(i), trial.what.send.size());
        if (sends) side.write(stream);
        if (!sends) side.clean();
      }
      const method::Target mine = LACUNA_TRY(endpoint->prepare(*operation, side.base(), kTimeout));
      if (i == 0) times.prepared = context.now() - before;
      const method::Target theirs = LACUNA_TRY(exchange(bootstrap, mine));
      std::int64_t busy = context.busy_ns();
      // Receives are posted before the sender begins, as in a loop of transfers.
      if (!sends) LACUNA_TRY(operation->start(side.base(), theirs));
      LACUNA_TRY(barrier(bootstrap));
      if (sends) busy = context.busy_ns();
      times.began = context.now();
      if (sends) LACUNA_TRY(operation->start(side.base(), theirs));
      LACUNA_TRY(endpoint->run(*operation, kTimeout));
      times.ended = context.now();
      times.busy = context.busy_ns() - busy;
      counters = operation->counters();
      LACUNA_TRY(barrier(bootstrap));  // who is told nothing looks now
      if (!told) times.ended = 0;
      if (verify && !sends) LACUNA_TRY(side.check(stream));
    }
    LACUNA_TRY(barrier(bootstrap));
    return {};
  }
};

}  // namespace

Result<Simulated> simulate_transfer(const nic::WorldOptions& options, const Trial& trial) {
  const auto world = LACUNA_TRY(nic::simulate(options));
  std::array<End, 2> ends;
  LACUNA_TRY(world->run([&](int rank) { return ends[static_cast<std::size_t>(rank)].run(rank, *world, trial, options.moves_bytes); }));
  const auto& [send, receive] = ends;
  return Simulated{.latency_us = us((receive.times.ended != 0 ? receive.times.ended : send.times.ended) - send.times.began),
                   .cpu_send_us = us(send.times.busy),
                   .cpu_recv_us = us(receive.times.busy),
                   .copy_send_us = us(send.counters.copy_ns),
                   .copy_recv_us = us(receive.counters.copy_ns),
                   .prepare_us = us(std::max(send.times.prepared, receive.times.prepared)),
                   .send = send.counters,
                   .receive = receive.counters};
}

// --- all to all -----------------------------------------------------------------------------------------------------

namespace {

// One rank: in step d it exchanges with rank XOR d, both directions at once, each over an endpoint of its own.
Result<Times> exchange_with_all(int rank, nic::World& world, const Trial& trial, bool verify) {
  nic::Context& context = world.context(rank);
  const Side source = LACUNA_TRY(Side::create(context, trial.what.send, trial.what.send_span));
  const Side target = LACUNA_TRY(Side::create(context, trial.what.receive, trial.what.receive_span));
  const auto stream_from = [&](int from) { return stream_of(static_cast<std::uint64_t>(from), trial.what.send.size()); };
  if (verify) source.write(stream_from(rank));
  Times times;
  for (int d = 1; d < world.ranks(); ++d) {
    const int peer = rank ^ d;
    nic::Bootstrap& bootstrap = world.bootstrap(rank, peer);
    std::array<std::unique_ptr<Endpoint>, 2> endpoints;
    for (auto& endpoint : endpoints) endpoint = LACUNA_TRY(Endpoint::connect(context, bootstrap, nic::Path::wire));
    const int out = rank < peer ? 0 : 1;
    Endpoint& sending = *endpoints[static_cast<std::size_t>(out)];
    Endpoint& receiving = *endpoints[static_cast<std::size_t>(1 - out)];
    const method::Transfer transfer{trial.what.send, trial.what.receive, trial.notify};
    const auto sender = LACUNA_TRY(method::make(*trial.method, Role::sender, sending, transfer, source.memory()));
    const auto receiver = LACUNA_TRY(method::make(*trial.method, Role::receiver, receiving, transfer, target.memory()));
    if (verify) target.clean();
    const method::Target ours = LACUNA_TRY(sending.prepare(*sender, source.base(), kTimeout));
    const method::Target landing = LACUNA_TRY(receiving.prepare(*receiver, target.base(), kTimeout));
    // The sender's word goes to their receiver and the other way round; the lower rank speaks for its sender first.
    const method::Target first = LACUNA_TRY(exchange(bootstrap, out == 0 ? ours : landing));
    const method::Target second = LACUNA_TRY(exchange(bootstrap, out == 0 ? landing : ours));
    const std::int64_t began = context.now();
    const std::int64_t busy = context.busy_ns();
    LACUNA_TRY(receiver->start(target.base(), out == 0 ? second : first));
    LACUNA_TRY(sender->start(source.base(), out == 0 ? first : second));
    bool sent = false;
    bool received = false;
    while (!sent || !received) {
      sent = sent || LACUNA_TRY(sender->progress());
      received = received || LACUNA_TRY(receiver->progress());
      if ((!sent || !received) && sending.poll() + receiving.poll() == 0) LACUNA_TRY(context.wait(began + kTimeout));
    }
    times.ended += context.now() - began;
    times.busy += context.busy_ns() - busy;
    LACUNA_TRY(barrier(bootstrap));  // also of those who are told nothing
    if (verify) LACUNA_TRY(target.check(stream_from(peer)));
  }
  return times;
}

}  // namespace

Result<Alltoall> simulate_alltoall(const nic::WorldOptions& options, const Trial& trial) {
  if (options.ranks < 2 || (options.ranks & (options.ranks - 1)) != 0)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} ranks; an alltoall here takes a power of two from 2 on", options.ranks));
  const auto world = LACUNA_TRY(nic::simulate(options));
  std::vector<Times> times(static_cast<std::size_t>(options.ranks));
  LACUNA_TRY(world->run([&](int rank) -> Result<void> {
    times[static_cast<std::size_t>(rank)] = LACUNA_TRY(exchange_with_all(rank, *world, trial, options.moves_bytes));
    return {};
  }));
  Alltoall result;
  for (const Times& t : times) {
    result.latency_us = std::max(result.latency_us, us(t.ended));
    result.cpu_us += us(t.busy) / options.ranks;
  }
  return result;
}

// --- what comes before a transfer -----------------------------------------------------------------------------------

namespace {

Result<SetUp> set_up(nic::World& world, int rank, int entries, std::int64_t bytes) {
  nic::Context& context = world.context(rank);
  const auto queue = LACUNA_TRY(context.create_completion_queue(4));
  const auto qp = LACUNA_TRY(context.connect(world.bootstrap(rank, 1 - rank), *queue, {}));
  SetUp costs;
  if (rank == 0) {
    const nic::Buffer memory = LACUNA_TRY(context.allocate(static_cast<std::size_t>(bytes)));
    std::int64_t began = context.now();
    auto region = std::make_optional(LACUNA_TRY(context.register_memory(memory.bytes(), {})));
    costs.register_us = us(context.now() - began);
    if (entries > 0) {
      const std::vector<nic::Sge> list(static_cast<std::size_t>(entries), nic::Sge{region->addr(), 1, region->lkey()});
      began = context.now();
      const nic::IndirectKey key = LACUNA_TRY(context.create_indirect_key(entries));
      costs.create_key_us = us(context.now() - began);
      const nic::Binding binding{.key = key.lkey(), .list = list};
      began = context.now();
      LACUNA_TRY(qp->post_send({.opcode = nic::Opcode::bind, .binding = &binding}));
      costs.post_bind_us = us(context.now() - began);
      nic::Completion done;
      while (context.poll(*queue, {&done, 1}) == 0) LACUNA_TRY(context.wait(began + kTimeout));
      if (done.status != nic::Status::success) return base::fail(base::Code::transfer, "a bind request failed");
      costs.bind_us = us(context.now() - began);
    }
    began = context.now();
    region.reset();
    costs.deregister_us = us(context.now() - began);
  }
  LACUNA_TRY(barrier(world.bootstrap(rank, 1 - rank)));
  return costs;
}

}  // namespace

Result<SetUp> simulate_set_up(const nic::WorldOptions& options, int entries, std::int64_t bytes) {
  const auto world = LACUNA_TRY(nic::simulate(options));
  SetUp costs;
  LACUNA_TRY(world->run([&](int rank) -> Result<void> {
    const SetUp mine = LACUNA_TRY(set_up(*world, rank, entries, bytes));
    if (rank == 0) costs = mine;
    return {};
  }));
  return costs;
}

}  // namespace lacuna::measure
