// Ends of connections in a simulated world, and a profile in which nothing costs anything until a test says what does.
#pragma once

#include <map>

#include "lacuna/nic/world.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {

inline const std::string kProfile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json";

using Parameters = std::map<std::string, double>;

/// The names in the profile that end in `suffix`.
std::vector<std::string> parameters_of(std::string_view suffix);
/// A world in which every time is 0 and every rate 10^6 GB/s, but for `on`. What is no time does not hang on the
/// calibration either.
nic::WorldOptions free_world(const Parameters& on = {}, int ranks = 2);

inline void run(const nic::WorldOptions& options, const std::function<base::Result<void>(int rank, nic::World& world)>& program) {
  const auto world = nic::simulate(options);
  ASSERT_TRUE(world) << world.error().text();
  const auto ended = (*world)->run([&](int rank) { return program(rank, **world); });
  EXPECT_TRUE(ended) << ended.error().text();
}

struct Cut {
  std::size_t offset, length;
};

/// One end of a connection, with memory whose place the other end knows.
struct ModelEnd {
  nic::Context* context = nullptr;
  nic::Bootstrap* bootstrap = nullptr;
  std::unique_ptr<nic::CompletionQueue> queue;
  std::unique_ptr<nic::QueuePair> qp;
  nic::Buffer buffer;
  nic::Region region;
  Address peer{};

  struct Options {
    std::size_t bytes = 1 << 20;
    nic::Rights rights;
    int completions = 256;
    int depth = 64;
  };
  static base::Result<ModelEnd> make(nic::World& world, int rank, int peer, const Options& options) {
    ModelEnd end;
    end.context = &world.context(rank);
    end.bootstrap = &world.bootstrap(rank, peer);
    end.queue = LACUNA_TRY(end.context->create_completion_queue(options.completions));
    end.qp = LACUNA_TRY(end.context->connect(*end.bootstrap, *end.queue, {nic::Path::wire, options.depth, options.depth}));
    end.buffer = LACUNA_TRY(end.context->allocate(options.bytes));
    end.region = LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), options.rights));
    end.peer = LACUNA_TRY(swap(*end.bootstrap, Address{end.region.addr(), end.region.rkey()}));
    return end;
  }
  static base::Result<ModelEnd> make(nic::World& world, int rank) { return make(world, rank, rank ^ 1, {}); }

  [[nodiscard]] nic::Sge sge(std::size_t offset, std::size_t length) const {
    return {region.addr() + offset, static_cast<std::uint32_t>(length), region.lkey()};
  }
  [[nodiscard]] std::vector<nic::Sge> list(std::span<const Cut> cuts) const {
    std::vector<nic::Sge> all;
    for (const Cut& cut : cuts) all.push_back(sge(cut.offset, cut.length));
    return all;
  }
  /// Posts `request` with these entries; what lies at the peer is meant from the start of its memory.
  base::Result<void> post(nic::SendRequest request, std::span<const Cut> cuts, std::size_t remote = 0) const {
    const std::vector<nic::Sge> entries = list(cuts);
    request.sg_list = entries;
    if (request.rkey == 0) request.rkey = peer.key, request.remote_addr = peer.addr + remote;
    return qp->post_send(request);
  }
  base::Result<void> post(nic::SendRequest request, Cut cut, std::size_t remote = 0) const { return post(request, {&cut, 1}, remote); }
  base::Result<void> receive(std::span<const Cut> cuts, std::uint64_t wr_id = 0) const {
    const std::vector<nic::Sge> entries = list(cuts);
    return qp->post_recv({.wr_id = wr_id, .sg_list = entries});
  }
  base::Result<void> receive(Cut cut, std::uint64_t wr_id = 0) const { return receive({&cut, 1}, wr_id); }
  base::Result<nic::Completion> next(std::int64_t timeout = 10 * kSecond) const {
    const std::int64_t deadline = context->now() + timeout;
    nic::Completion completion;
    while (context->poll(*queue, {&completion, 1}) == 0) LACUNA_TRY(context->wait(deadline));
    return completion;
  }
  /// Polls, and leaves completions where they are, until the queue pair is in error.
  [[nodiscard]] base::Result<base::Error> fault(std::int64_t timeout = 10 * kSecond) const {
    const std::int64_t deadline = context->now() + timeout;
    while (qp->fault() == nullptr) {
      context->poll(*queue, {});
      LACUNA_TRY(context->wait(deadline));
    }
    return *qp->fault();
  }
  [[nodiscard]] base::Result<void> meet() const {
    LACUNA_TRY(barrier(*bootstrap));
    return {};
  }
};

/// Runs `body` at rank 0 of a free world; rank 1 only has memory.
inline void at_rank_0(const Parameters& on, const std::function<base::Result<void>(ModelEnd& end)>& body) {
  run(free_world(on), [&](int rank, nic::World& world) -> base::Result<void> {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    LACUNA_TRY(end.meet());
    if (rank == 0) LACUNA_TRY(body(end));
    return end.meet();
  });
}
/// How long `what` takes at a rank, in nanoseconds.
inline base::Result<std::int64_t> timed(const ModelEnd& end, const std::function<base::Result<void>()>& what) {
  const std::int64_t began = end.context->now();
  LACUNA_TRY(what());
  return end.context->now() - began;
}
/// The same of a write, to its completion.
inline base::Result<std::int64_t> write(const ModelEnd& end, std::span<const nic::Sge> list, std::uint64_t remote_addr,
                                        std::uint32_t rkey) {
  return timed(end, [&]() -> base::Result<void> {
    LACUNA_TRY(end.qp->post_send({.opcode = nic::Opcode::write, .sg_list = list, .remote_addr = remote_addr, .rkey = rkey}));
    const nic::Completion done = LACUNA_TRY(end.next());
    if (done.status != nic::Status::success) return base::fail(base::Code::transfer, std::string(status_name(done.status)));
    return {};
  });
}
inline base::Result<std::int64_t> write(const ModelEnd& end, const std::vector<Cut>& cuts, std::size_t remote = 0) {
  return write(end, end.list(cuts), end.peer.addr + remote, end.peer.key);
}

}  // namespace lacuna::test
