// A process's messages with all others: no process connects beforehand, what comes takes receives of one queue, and two
// processes keep their order. Queue pairs over a hub; processes that leave.
#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

struct HubEnd {
  nic::Context* context = nullptr;
  std::unique_ptr<nic::CompletionQueue> queue;
  nic::RegisteredBuffer memory;  // slots of 64 bytes: those of receives, then those of sends
  std::unique_ptr<nic::Hub> hub;

  static base::Result<HubEnd> make(nic::World& world, int rank, int depth) {
    HubEnd end;
    end.context = &world.context(rank);
    end.queue = LACUNA_TRY(end.context->create_completion_queue(2 * depth));
    end.memory = LACUNA_TRY(nic::RegisteredBuffer::create(*end.context, 128L * depth));
    end.hub = LACUNA_TRY(end.context->create_hub(*end.queue, {.max_send_wr = depth, .max_recv_wr = depth}));
    return end;
  }
  [[nodiscard]] int* word(int slot) const { return reinterpret_cast<int*>(memory.buffer.data() + 64L * slot); }
  Result receive(int slot) const {
    const nic::Sge sge = memory.sge(64L * slot, 64);
    return hub->post_recv({.wr_id = static_cast<std::uint64_t>(slot), .sg_list = {&sge, 1}});
  }
  Result send(int to, int slot, int what) const {
    *word(slot) = what;
    const nic::Sge sge = memory.sge(64L * slot, 8);
    return hub->post_send(to, {.wr_id = static_cast<std::uint64_t>(slot), .sg_list = {&sge, 1}});
  }
  [[nodiscard]] Result succeeds() const {
    const Status status = LACUNA_TRY(next()).status;
    return status == Status::success ? Result() : base::fail(base::Code::transfer, std::string(status_name(status)));
  }
  [[nodiscard]] base::Result<nic::Completion> next() const {
    nic::Completion done;
    while (context->poll(*queue, {&done, 1}) == 0) LACUNA_TRY(context->wait(context->now() + kSecond));
    return done;
  }
};

// Two wait for a receive. The first one gives up and leaves; the only receive is the other one's.
TEST(ModelHub, FeedsTheNextWhereTheFirstHasLeft) {
  const auto world = nic::simulate({.profile = kProfile, .ranks = 3, .ranks_per_node = 1}).value();
  const Result ended = world->run([&](int rank) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(*world, rank, 4));
    const auto pass = [&](std::int64_t ns) {
      const std::int64_t until = end.context->now() + ns;
      while (end.context->now() < until && end.context->wait(until)) continue;
    };
    if (rank == 0) {
      pass(kSecond / 10);
      LACUNA_TRY(end.receive(0));
      const nic::Completion done = LACUNA_TRY(end.next());
      EXPECT_EQ(done.status, Status::success) << status_name(done.status);
      EXPECT_EQ(done.qp_num, 2U);
      return {};
    }
    if (rank == 2) pass(kSecond / 1000);
    LACUNA_TRY(end.send(0, 4, rank));
    pass(kSecond / 100);
    return rank == 1 ? Result() : end.succeeds();
  });
  EXPECT_TRUE(ended) << ended.error().text();
}

// Each sends each other three words. The receives are posted for all of them, in no order.
TEST(ModelHub, TakesWhatAnybodySends) {
  constexpr int kRanks = 6, kEach = 3, kDepth = kRanks * kEach;
  std::vector<std::int64_t> connections;
  const auto world = nic::simulate({.profile = kProfile, .ranks = kRanks, .ranks_per_node = 2}).value();
  const Result ended = world->run([&](int rank) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(*world, rank, kDepth));
    for (int slot = 0; slot < kDepth; ++slot) LACUNA_TRY(end.receive(slot));
    int slot = kDepth;
    for (int i = 0; i < kEach; ++i) {
      for (int to = 0; to < kRanks; ++to) LACUNA_TRY(end.send(to, slot++, 100 * rank + i));
    }
    std::array<int, kRanks> came{};
    for (int left = 2 * kDepth; left > 0; --left) {
      const nic::Completion done = LACUNA_TRY(end.next());
      EXPECT_EQ(done.status, Status::success) << status_name(done.status);
      if (done.opcode != Opcode::recv) continue;
      EXPECT_EQ(done.byte_len, 8U);
      EXPECT_EQ(*end.word(static_cast<int>(done.wr_id)), static_cast<int>(100 * done.qp_num) + came.at(done.qp_num)++);
    }
    EXPECT_EQ(came, (std::array<int, kRanks>{3, 3, 3, 3, 3, 3}));
    connections.push_back(world->usage(rank).connections);
    EXPECT_EQ(world->usage(rank).messages, kDepth);
    EXPECT_EQ(world->usage(rank).bytes, 8 * kDepth);
    EXPECT_EQ(world->usage(rank).registered, 128 * kDepth);
    return {};
  });
  EXPECT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(connections, std::vector<std::int64_t>(kRanks, kRanks));
}

// Only those that talk are connected.
TEST(ModelHub, ConnectsThoseThatTalk) {
  const auto world = nic::simulate({.profile = kProfile, .ranks = 5}).value();
  const Result ended = world->run([&](int rank) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(*world, rank, 4));
    if (rank == 1) LACUNA_TRY(end.send(3, 4, 7));
    if (rank == 3) LACUNA_TRY(end.receive(0));
    if (rank == 1 || rank == 3) LACUNA_TRY(end.succeeds());
    return {};
  });
  EXPECT_TRUE(ended) << ended.error().text();
  for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(world->usage(rank).connections, rank == 1 || rank == 3 ? 1 : 0) << rank;
}

// More senders than receives: those that find none come again, in whole multiples of the time for that, and none is
// lost, however few receives there are.
TEST(ModelHub, ComeAgainWhereNoReceiveIs) {
  constexpr int kRanks = 9, kEach = 5;
  nic::WorldOptions options = free_world({{"nic.not_ready_ns", 10'000}}, kRanks);
  const auto world = nic::simulate(options).value();
  const Result ended = world->run([&](int rank) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(*world, rank, 8));
    if (rank > 0) {
      for (int i = 0; i < kEach; ++i) LACUNA_TRY(end.send(0, 8 + i, 10 * rank + i));
      for (int i = 0; i < kEach; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
      return {};
    }
    EXPECT_FALSE(end.context->wait(end.context->now() + 5000));  // nothing is for it yet
    const std::int64_t began = end.context->now();
    for (const int slot : {0, 1}) LACUNA_TRY(end.receive(slot));
    std::array<int, kRanks> came{};
    for (int i = 0; i < (kRanks - 1) * kEach; ++i) {
      const nic::Completion done = LACUNA_TRY(end.next());
      EXPECT_GE(end.context->now(), began + 5000);
      EXPECT_EQ(*end.word(static_cast<int>(done.wr_id)), static_cast<int>(10 * done.qp_num) + came.at(done.qp_num)++);
      LACUNA_TRY(end.receive(static_cast<int>(done.wr_id)));
    }
    EXPECT_GE(world->usage(0).not_ready, kRanks - 1);
    return {};
  });
  EXPECT_TRUE(ended) << ended.error().text();
}

TEST(ModelHub, HasQueuePairsByLine) {
  run({.profile = kProfile, .ranks = 2}, [](int rank, nic::World& world) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(world, rank, 4));
    std::array<std::unique_ptr<nic::QueuePair>, 2> lines;
    // In another order at each end
    for (const int i : {0, 1}) {
      const int line = rank == 0 ? i : 1 - i;
      lines.at(static_cast<std::size_t>(line)) = LACUNA_TRY(end.hub->connect(1 - rank, line, *end.queue, {}));
    }
    LACUNA_TRY(barrier(world.bootstrap(rank, 1 - rank)));
    for (const int line : {0, 1}) {
      nic::QueuePair& qp = *lines.at(static_cast<std::size_t>(line));
      const nic::Sge sge = end.memory.sge(64L * line, 8);
      *end.word(line) = rank == 0 ? 40 + line : 0;
      if (rank == 0) LACUNA_TRY(qp.post_send({.sg_list = {&sge, 1}}));
      if (rank == 1) LACUNA_TRY(qp.post_recv({.wr_id = 9, .sg_list = {&sge, 1}}));
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
      EXPECT_EQ(*end.word(line), 40 + line);
      LACUNA_TRY(barrier(world.bootstrap(rank, 1 - rank)));
    }
    return {};
  });
}

TEST(ModelHub, SaysWhatIsWrong) {
  run({.profile = kProfile, .ranks = 2}, [](int rank, nic::World& world) -> Result {
    const HubEnd end = LACUNA_TRY(HubEnd::make(world, rank, 1));
    if (rank == 1) return {};
    EXPECT_EQ(end.send(2, 1, 0).error().code, base::Code::invalid_argument);
    EXPECT_EQ(end.send(-1, 1, 0).error().code, base::Code::invalid_argument);
    const nic::Sge sge = end.memory.sge(0, 8);
    const auto written = end.hub->post_send(1, {.opcode = Opcode::write, .sg_list = {&sge, 1}});
    EXPECT_EQ(written.error().code, base::Code::unsupported);
    LACUNA_TRY(end.receive(0));
    EXPECT_EQ(end.receive(0).error().code, base::Code::limit);
    return {};
  });
}

// A process that has no hub any more is gone for those that talked to it, and for those that try to.
TEST(ModelHub, TellsOfThoseThatLeave) {
  run({.profile = kProfile, .ranks = 3, .ranks_per_node = 3}, [](int rank, nic::World& world) -> Result {
    HubEnd end = LACUNA_TRY(HubEnd::make(world, rank, 4));
    if (rank == 0) LACUNA_TRY(end.receive(0));
    if (rank == 1) LACUNA_TRY(end.send(0, 4, 1));
    if (rank < 2) LACUNA_TRY(end.succeeds());
    if (rank == 0) end.hub.reset();
    for (const int other : {0, 1, 2}) {
      if (other != rank) LACUNA_TRY(barrier(world.bootstrap(rank, other)));
    }
    if (rank == 0) return {};
    LACUNA_TRY(end.send(0, 5, 1));
    EXPECT_NE(LACUNA_TRY(end.next()).status, Status::success);
    EXPECT_EQ(end.hub->fault(0)->code, base::Code::peer_lost);
    EXPECT_EQ(end.hub->fault(3 - rank), nullptr);
    return {};
  });
}

// A process that has waited in vain for the others is none that a later one meets: that one waits in vain, too.
TEST(ModelHub, IsNotMetByWhoComesTooLate) {
  const auto world = nic::simulate({.profile = kProfile, .ranks = 2, .ranks_per_node = 1}).value();
  const Result ended = world->run([&](int rank) -> Result {
    nic::Context& context = world->context(rank);
    const std::int64_t until = context.now() + rank * 60 * kSecond;
    while (context.now() < until && context.wait(until)) continue;
    const base::Result<HubEnd> end = HubEnd::make(*world, rank, 4);
    if (end) return base::fail(base::Code::timeout, fmt::format("rank {} met a hub that is gone", rank));
    EXPECT_EQ(end.error().code, base::Code::timeout) << end.error().text();
    return {};
  });
  EXPECT_TRUE(ended) << ended.error().text();
}

// On a NIC with no hub the caller learns so.
TEST(Hub, IsNotOfEveryNic) {
  const auto context = nic::open("local").value();
  const auto queue = context->create_completion_queue(8).value();
  EXPECT_EQ(context->create_hub(*queue, {}).error().code, base::Code::unsupported);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
