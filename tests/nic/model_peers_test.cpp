// Ends that close, fail or never come, in virtual time: the other end learns it, nothing touches memory that is gone,
// and nothing hangs: a deadline of virtual weeks passes at once.
#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

const nic::WorldOptions kCalibrated{.profile = kProfile};

// A peer that leaves in good order: what it had finished arrives, then the fault says "closed".
TEST(ModelClosing, DeliversThenSaysSo) {
  run(kCalibrated, [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    if (rank == 1) LACUNA_TRY(end.receive({0, 8}, 1));
    if (rank == 1) LACUNA_TRY(end.receive({0, 8}, 2));
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      std::memset(end.buffer.data(), 7, 8);
      LACUNA_TRY(end.post({}, {0, 8}));
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
      return {};
    }
    EXPECT_EQ(LACUNA_TRY(end.fault()).code, base::Code::peer_lost);  // no earlier than what was sent before
    EXPECT_NE(end.qp->fault()->message.find("closed"), std::string::npos);
    const nic::Completion first = LACUNA_TRY(end.next());
    EXPECT_EQ(first.wr_id, 1U);
    EXPECT_EQ(first.status, Status::success);
    EXPECT_EQ(end.buffer.data()[7], std::byte{7});
    const nic::Completion second = LACUNA_TRY(end.next());
    EXPECT_EQ(second.wr_id, 2U);
    EXPECT_EQ(second.status, Status::wr_flush_err);
    LACUNA_TRY(end.post({.wr_id = 3}, {0, 8}));
    EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::wr_flush_err);
    return {};
  });
}

// Requests that are on their way to a peer that closes: the first one got no answer, the others are flushed.
TEST(ModelClosing, AnswersNoMore) {
  for (const Opcode opcode : {Opcode::send, Opcode::write, Opcode::read}) {
    run(free_world({{"nic.flight_ns", 1000}, {"nic.retry_ns", 1e6}}), [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      if (rank == 1) {
        end.qp.reset();
        return end.meet();
      }
      for (std::uint64_t id = 0; id < 3; ++id) LACUNA_TRY(end.post({.wr_id = id, .opcode = opcode}, {0, 8}));
      for (std::uint64_t id = 0; id < 3; ++id) {
        const nic::Completion done = LACUNA_TRY(end.next());
        EXPECT_EQ(done.wr_id, id);
        EXPECT_EQ(done.status, id == 0 ? Status::retry_exc_err : Status::wr_flush_err) << status_name(done.status);
      }
      EXPECT_GE(end.context->now(), 1'000'000);
      EXPECT_EQ(end.qp->fault()->code, base::Code::peer_lost);
      return end.meet();
    });
  }
}

// It failed by itself: its peer learns that when it needs an answer, and is not told that it was its own request.
TEST(ModelClosing, IsNotNeededToBeSilent) {
  run(kCalibrated, [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    if (rank == 1) {
      nic::Sge bad = end.sge(0, 8);
      bad.lkey += 7;
      LACUNA_TRY(end.qp->post_send({.sg_list = {&bad, 1}}));
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::loc_prot_err);
    }
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      EXPECT_EQ(end.qp->fault(), nullptr);
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 8}));
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::retry_exc_err);
      EXPECT_EQ(end.qp->fault()->code, base::Code::peer_lost);
    }
    return end.meet();
  });
}

// An end that leaves, with all its memory perhaps, while its messages fly: no end reads what is gone, and they arrive.
TEST(ModelClosing, MayTakeItsMemoryAlong) {
  for (const bool frees : {false, true}) {
    for (const Opcode opcode : {Opcode::send, Opcode::write, Opcode::read}) {
      run(free_world({{"nic.flight_ns", 1e6}}), [&](int rank, nic::World& world) -> Result {
        ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
        std::memset(end.buffer.data(), rank + 1, 8);
        if (rank == 1) LACUNA_TRY(end.receive({0, 8}));
        LACUNA_TRY(end.meet());
        if (rank == 0) {
          LACUNA_TRY(end.post({.opcode = opcode}, {0, 8}));
          end.qp.reset();
          end.queue.reset();
          if (frees) {
            end.region = nic::Region();
            end.buffer = nic::Buffer();
          } else {
            static_cast<void>(end.context->wait(kSecond));
          }
          return {};
        }
        LACUNA_TRY(end.fault());
        EXPECT_EQ(end.buffer.data()[0], opcode == Opcode::read ? std::byte{2} : std::byte{1});
        return {};
      });
    }
  }
}

// A send that no receive awaits, in a world whose time between two tries is a picosecond: what becomes of it when
// anybody leaves, or time passes.
TEST(ModelHanging, IsNotWhatASendWithoutAReceiveDoes) {
  const Watchdog dog("weeks of a simulated clock");
  constexpr std::int64_t weeks = 1'000'000 * kSecond;
  for (const int leaves : {-1, 0, 1}) {
    SCOPED_TRACE(leaves);
    run(free_world(), [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      if (rank == 0) LACUNA_TRY(end.post({.wr_id = 1}, {0, 8}));
      if (rank == 0) LACUNA_TRY(end.post({.wr_id = 2, .opcode = Opcode::write}, {0, 8}));
      if (leaves == rank) return {};
      if (leaves < 0) {
        EXPECT_EQ(end.next(weeks).error().code, base::Code::timeout);
        if (rank == 1) LACUNA_TRY(end.receive({0, 8}));  // it may still come
        EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
        if (rank == 0) LACUNA_TRY(end.next());
        return {};
      }
      if (rank == 0) {
        EXPECT_EQ(LACUNA_TRY(end.next(weeks)).status, Status::retry_exc_err);
        EXPECT_EQ(LACUNA_TRY(end.next(weeks)).status, Status::wr_flush_err);
      }
      EXPECT_EQ(LACUNA_TRY(end.fault(weeks)).code, base::Code::peer_lost);
      return {};
    });
  }
}

// Whoever waits for ever comes to an end of time, behind which it can still tidy up.
TEST(ModelHanging, IsNotWhatWaitingForEverDoes) {
  run(kCalibrated, [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    constexpr std::int64_t ever = std::numeric_limits<std::int64_t>::max();
    int waits = 0;
    Result waited;
    for (; waited && waits < 10; ++waits) waited = end.context->wait(ever);
    EXPECT_LT(waits, 10);
    EXPECT_EQ(waited.error().code, base::Code::timeout);
    end.context->poll(*end.queue, {});
    end.region = nic::Region();
    EXPECT_GT(end.context->now(), 1'000'000 * kSecond);
    EXPECT_FALSE(end.context->wait(0));
    return {};
  });
}

// Whatever moment it comes at, before, in or behind a poll of any of two queues, a completion is seen, and within a
// round of polls.
TEST(ModelHanging, IsNotWhatAMissedMomentDoes) {
  for (int flight = 0; flight <= 100; ++flight) {
    run(free_world({{"nic.flight_ns", flight}, {"cpu.poll_empty_ns", 20}}), [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      const auto other = LACUNA_TRY(end.context->create_completion_queue(4));
      if (rank == 1) LACUNA_TRY(end.receive({0, 8}));
      LACUNA_TRY(end.meet());
      const std::int64_t began = end.context->now();
      if (rank == 0) LACUNA_TRY(end.post({}, {0, 8}));
      nic::Completion done;
      while (end.context->poll(*end.queue, {&done, 1}) + end.context->poll(*other, {}) == 0) LACUNA_TRY(end.context->wait(began + kSecond));
      EXPECT_LE(end.context->now() - began, (rank == 0 ? 2 : 1) * flight + 5 * 20) << flight;
      return end.meet();
    });
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
