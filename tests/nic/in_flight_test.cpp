// What goes wrong while data is under way: nobody receives, a region goes, a peer dies. An error that names its cause;
// and the context that saw it connects again.
#include <signal.h>

#include "tests/nic/rig.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;

constexpr std::size_t kBytes = 1 << 20;

// A device gives up on a receiver that has posted nothing, if it is told to.
std::string no_receive(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const Set retries("LACUNA_VERBS_RNR_RETRIES", "1");
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  if (rank == 0) {
    const nic::Sge sge = rig.sge(0, 100);
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    if (completion.status != Status::rnr_retry_exc_err) return "completed with " + std::string(status_name(completion.status));
    LACUNA_END_EXPECT(rig.qp->fault() != nullptr &&
                      rig.qp->fault()->message.find("the peer has posted no receive, also after 1 further") != std::string::npos);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*rig.context, path, rank, bootstrap);
}
// NICs local and ofi wait for one as long as their peer lives.
std::string late_receive(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const nic::Sge sge = rig.sge(0, 100);
  if (rank == 0) {
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    LACUNA_END_EXPECT(!rig.next(kSecond / 20));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
class NoReceive : public EveryPath {};
TEST_P(NoReceive, IsToldAfterTheRetriesOrWaitedForTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  const bool gives_up = GetParam() == nic::Path::wire && !tests_ofi();
  const auto scenario = gives_up ? no_receive : late_receive;
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, NoReceive, testing::ValuesIn(tested_paths()), path_test_name);

// The target deregisters in the middle of a stream of writes. Once that returns its memory is left alone, and the
// writer has its error.
std::string target_gone(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::memset(rig.buffer.data(), rank == 0 ? 1 : 0, kBytes);
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {
    const nic::Sge sge = rig.sge(0, kBytes);
    nic::Completion completion;
    const std::int64_t deadline = rig.context->now() + kPatience;
    while (completion.status == Status::success && rig.context->now() < deadline) {
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
      completion = LACUNA_END_TRY(rig.next());
    }
    if (completion.status != Status::rem_access_err) return "completed with " + std::string(status_name(completion.status));
    LACUNA_END_EXPECT(path != nic::Path::wire || rig.qp->fault()->message.find("a wrong or old rkey") != std::string::npos);
  } else {
    LACUNA_END_TRY(rig.flag(kBytes - 8, 0x0101'0101'0101'0101));  // the first write is through
    rig.region = nic::Region();
    std::memset(rig.buffer.data(), 2, kBytes);
    LACUNA_END_TRY(rig.fault());
    for (std::size_t i = 0; i < kBytes; ++i) LACUNA_END_EXPECT(rig.buffer.data()[i] == std::byte{2});
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*rig.context, path, rank, bootstrap);
}

// A write waits behind others while the writer looks at nothing, until the write's region is gone. A NIC may learn that
// from a connection that breaks.
std::string target_gone_unseen(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  constexpr int writes = 6;  // more than a socket takes, fewer than NIC ofi has under way
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  nic::RegisteredBuffer other = LACUNA_END_TRY(nic::RegisteredBuffer::create(*rig.context, 8));
  const Address stays = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  const Address goes = LACUNA_END_TRY(swap(bootstrap, Address{other.region.addr(), other.region.rkey()}));
  const nic::Sge all = rig.sge(0, kBytes), some = rig.sge(0, 8);
  const nic::SendRequest long_one{.opcode = Opcode::write, .sg_list = {&all, 1}, .remote_addr = stays.addr, .rkey = stays.key};
  const nic::SendRequest last{.wr_id = 1, .opcode = Opcode::write, .sg_list = {&some, 1}, .remote_addr = goes.addr, .rkey = goes.key};
  for (int i = 0; rank == 1 && i < 2; ++i) LACUNA_END_TRY(rig.qp->post_recv({}));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {  // the first ones ask for the keys
    for (const nic::SendRequest& request : {long_one, last, nic::SendRequest{}}) {
      LACUNA_END_TRY(rig.qp->post_send(request));
      LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    }
    for (int i = 0; i < writes; ++i) LACUNA_END_TRY(rig.qp->post_send(long_one));
    LACUNA_END_TRY(rig.qp->post_send(last));
  } else {
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) other.region = nic::Region();
  LACUNA_END_TRY(barrier(bootstrap));
  for (int i = 0; rank == 0 && i <= writes; ++i) {
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    const bool may_fail = completion.wr_id == last.wr_id && completion.status == Status::rem_access_err;
    if (completion.status != Status::success && !may_fail) return "completed with " + std::string(status_name(completion.status));
  }
  if (rank == 0 && rig.qp->fault() == nullptr) {
    LACUNA_END_TRY(rig.qp->post_send({}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  }
  const auto writer_has_ended = [&] {
    nic::Completion completion;
    return rig.context->poll(*rig.queue, {&completion, 1}) > 0 || rig.qp->fault() != nullptr;
  };
  if (rank == 1) LACUNA_END_TRY(rig.until("the writer to end", writer_has_ended));
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*rig.context, path, rank, bootstrap);
}

// The source deregisters what it sends from while the device tries again and again, because the peer does not receive.
// Then it does: there is nothing to send.
std::string source_gone(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  constexpr std::uint64_t messages = 4;
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  std::memset(rig.buffer.data(), rank == 0 ? 1 : 2, kBytes);
  const nic::Sge sge = rig.sge(0, kBytes);
  if (rank == 0) {
    for (std::uint64_t i = 0; i < messages; ++i) LACUNA_END_TRY(rig.qp->post_send({.wr_id = i, .sg_list = {&sge, 1}}));
    LACUNA_END_EXPECT(!rig.next(kSecond / 20));
    rig.region = nic::Region();
  }
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) {
    for (std::uint64_t i = 0; i < messages; ++i) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = i, .sg_list = {&sge, 1}}));
  }
  for (std::uint64_t i = 0; i < messages; ++i) {
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    const Status wanted = rank == 0 && i == 0 ? Status::loc_prot_err : Status::wr_flush_err;
    if (completion.wr_id != i || !means(wanted, completion.status))
      return "request " + std::to_string(i) + " completed with " + std::string(status_name(completion.status));
  }
  // What was copied before may have come
  if (rank == 1) LACUNA_END_EXPECT(rig.buffer.data()[kBytes - 1] == std::byte{2});
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*rig.context, path, rank, bootstrap);
}

class RegionGone : public EveryPath {};
TEST_P(RegionGone, AtTheTargetInFlightTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return target_gone(GetParam(), rank, b); }), "");
}
TEST_P(RegionGone, AtTheTargetUnseenTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return target_gone_unseen(GetParam(), rank, b); }), "");
}
TEST_P(RegionGone, AtTheSourceInFlightTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return source_gone(GetParam(), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, RegionGone, testing::ValuesIn(tested_paths()), path_test_name);

// A context that lost one peer connects to the next.
std::string killed(nic::Context& context, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto queue = LACUNA_END_TRY(context.create_completion_queue(16));
  const auto qp = LACUNA_END_TRY(context.connect(bootstrap, *queue, {path, 4, 4}));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) raise(SIGKILL);
  const std::int64_t deadline = context.now() + kPatience;
  while (qp->fault() == nullptr) {
    context.poll(*queue, {});
    if (!context.wait(deadline)) return in_vain("the news that the peer has died");
  }
  LACUNA_END_EXPECT(qp->fault()->code == base::Code::peer_lost);
  return {};
}
class PeerKilled : public EveryPath {};
TEST_P(PeerKilled, ContextConnectsToAnotherTwoProcesses) {
  const nic::Path path = GetParam();
  LACUNA_NEEDS_PATH(path);
  std::unique_ptr<nic::Context> kept;  // rank 0's; each child of rank 1 has its own
  const auto context = [&](int rank) -> base::Result<nic::Context*> {
    if (rank == 1) static_cast<void>(kept.release());  // of the process that it was forked from
    if (kept == nullptr) kept = LACUNA_TRY(open_tested());
    return kept.get();
  };
  const auto dies = [&](int rank, nic::Bootstrap& b) -> std::string { return killed(*LACUNA_END_TRY(context(rank)), path, rank, b); };
  const auto lives = [&](int rank, nic::Bootstrap& b) -> std::string { return works_again(*LACUNA_END_TRY(context(rank)), path, rank, b); };
  EXPECT_EQ(in_two_processes(dies, SIGKILL), "");
  EXPECT_EQ(in_two_processes(lives), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, PeerKilled, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
