// Every misuse has the error that verbs would give, by name; the bytes around stay as they were, and another connection
// between the same two works.
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;

constexpr std::size_t kBytes = 8192;

// Rank 0 posts one bad request; both ends see the statuses that belong to it, then flushes; rank 1's memory is
// untouched.
struct Bad {
  const char* name;
  Opcode opcode;
  Status at_sender;
  Status at_receiver;  // of a posted receive; success if none is posted
  std::size_t recv_bytes;
  nic::Rights receiver_rights;
  // What to post, given the honest request.
  void (*spoil)(nic::SendRequest& request, nic::Sge& sge);
  void (*spoil_recv)(nic::Sge& sge) = [](nic::Sge&) {};
};

const Bad kBad[] = {
    {"LocalByteBeyondRegion",
     Opcode::write,
     Status::loc_prot_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest&, nic::Sge& sge) { sge.addr += kBytes - sge.length + 1; }},
    {"LocalByteBeforeRegion",
     Opcode::send,
     Status::loc_prot_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest&, nic::Sge& sge) { sge.addr -= 1; }},
    {"LocalWrongKey", Opcode::send, Status::loc_prot_err, Status::success, 0, {}, [](nic::SendRequest&, nic::Sge& sge) { sge.lkey ^= 1; }},
    {"RemoteByteBeyondRegion",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge& sge) { request.remote_addr += kBytes - sge.length + 1; }},
    {"RemoteByteBeforeRegion",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge&) { request.remote_addr -= 1; }},
    {"RemoteAddressWraps",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge&) { request.remote_addr = ~std::uint64_t{0} - 8; }},
    {"RemoteWrongKey",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge&) { request.rkey += 256; }},
    {"RemoteStaleKey",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge&) { request.rkey -= 1; }},
    {"RemoteWithoutRight",
     Opcode::write,
     Status::rem_access_err,
     Status::success,
     0,
     {.remote_write = false},
     [](nic::SendRequest&, nic::Sge&) {}},
    {"ReadBeyondRegion",
     Opcode::read,
     Status::rem_access_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest& request, nic::Sge& sge) { request.remote_addr += kBytes - sge.length + 1; }},
    {"ReadWithoutRight",
     Opcode::read,
     Status::rem_access_err,
     Status::success,
     0,
     {.remote_read = false},
     [](nic::SendRequest&, nic::Sge&) {}},
    {"ReadIntoWrongKey",
     Opcode::read,
     Status::loc_prot_err,
     Status::success,
     0,
     {},
     [](nic::SendRequest&, nic::Sge& sge) { sge.lkey += 1; }},
    {"ReceiveTooShort", Opcode::send, Status::rem_inv_req_err, Status::loc_len_err, 99, {}, [](nic::SendRequest&, nic::Sge&) {}},
    {"ReceiveWithoutRight",
     Opcode::send,
     Status::rem_op_err,
     Status::loc_prot_err,
     100,
     {.local_write = false, .remote_write = false},
     [](nic::SendRequest&, nic::Sge&) {}},
    {"ReceiveBeyondRegion",
     Opcode::send,
     Status::rem_op_err,
     Status::loc_prot_err,
     100,
     {},
     [](nic::SendRequest&, nic::Sge&) {},
     [](nic::Sge& sge) { sge.addr += kBytes - 50; }},
};

// Whether a person can act on what a device's error says.
bool names_the_cause(const std::string& text, Status status) {
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  switch (status) {
    case Status::rem_access_err: return says("a wrong or old rkey, bytes outside its region, or a right");
    case Status::loc_prot_err: return says("a wrong or old lkey, bytes outside its region") || says("of a wrong lkey");
    case Status::rem_inv_req_err:
    case Status::rem_op_err:
      return says("its receive is shorter than the message") || says("the peer failed while it executed the request");
    default: return false;
  }
}

std::string misuse(const Bad& bad, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes, {}, rank == 1 ? bad.receiver_rights : nic::Rights{}));
  std::memset(rig.buffer.data(), rank == 0 ? 1 : 2, kBytes);
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  if (rank == 0) {
    nic::Sge sge = rig.sge(0, 100);
    nic::SendRequest request{.wr_id = 1, .opcode = bad.opcode, .remote_addr = peer.addr, .rkey = peer.key, .signaled = false};
    bad.spoil(request, sge);
    request.sg_list = {&sge, 1};
    LACUNA_END_TRY(rig.qp->post_send(request));
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    if (!means(bad.at_sender, completion.status)) return std::string("completed with ") + std::string(status_name(completion.status));
    const nic::Sge good = rig.sge(0, 100);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 2, .sg_list = {&good, 1}}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::wr_flush_err);
    LACUNA_END_EXPECT(rig.qp->fault() != nullptr);
    if (path == nic::Path::wire && !names_the_cause(rig.qp->fault()->message, bad.at_sender))
      return std::string(status_name(bad.at_sender)) + ": " + rig.qp->fault()->message;
  } else {
    nic::Sge sge = rig.sge(0, bad.recv_bytes);
    bad.spoil_recv(sge);
    if (bad.at_receiver != Status::success) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 3, .sg_list = {&sge, 1}}));
    LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 4}));
    nic::Completion completion = LACUNA_END_TRY(rig.next());
    if (bad.at_receiver != Status::success) {
      if (!means(bad.at_receiver, completion.status) || completion.wr_id != 3)
        return std::string("received with ") + std::string(status_name(completion.status));
      completion = LACUNA_END_TRY(rig.next());
    }
    // The connection is gone, and says so
    LACUNA_END_EXPECT(completion.wr_id == 4 && completion.status == Status::wr_flush_err);
    for (std::size_t i = 0; i < kBytes; ++i) LACUNA_END_EXPECT(rig.buffer.data()[i] == std::byte{2});
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return works_again(*rig.context, path, rank, bootstrap);
}

class Misuse : public testing::TestWithParam<std::tuple<Bad, nic::Path>> {};
TEST_P(Misuse, HasItsStatusTwoProcesses) {
  const auto& [bad, path] = GetParam();
  LACUNA_NEEDS_PATH(path);
  EXPECT_EQ(
      in_two_processes([&](int rank, nic::Bootstrap& b) { return misuse(std::get<0>(GetParam()), std::get<1>(GetParam()), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, Misuse, testing::Combine(testing::ValuesIn(kBad), testing::ValuesIn(tested_paths())), [](const auto& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::string(nic::path_name(std::get<1>(info.param)));
});

// A region that is gone cannot be reached, and its key is not its successor's.
std::string after_deregistration(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const std::uint32_t old_key = rig.region.rkey();
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), old_key}));
  if (rank == 1) {
    rig.region = nic::Region();
    rig.region = LACUNA_END_TRY(rig.context->register_memory(rig.buffer.bytes(), {}));
    LACUNA_END_EXPECT(rig.region.rkey() != old_key);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {
    const nic::Sge sge = rig.sge(0, 8);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::rem_access_err);
  } else {
    LACUNA_END_TRY(rig.fault());
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

class Deregistration : public EveryPath {};
TEST_P(Deregistration, EndsAccessTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return after_deregistration(GetParam(), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, Deregistration, testing::ValuesIn(tested_paths()), path_test_name);

// What a post refuses at once: the message names the limit, and the queue pair goes on working.
std::string refused_posts(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig =
      LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes, {.max_sge = 2, .max_send_wr = 4, .max_recv_wr = 4, .max_message_bytes = 1000}));
  const nic::Sge three[] = {rig.sge(0, 1), rig.sge(0, 1), rig.sge(0, 1)};
  const auto refused = [](const base::Result<void>& result, const char* text) {
    return !result && result.error().code == base::Code::limit && result.error().message.find(text) != std::string::npos;
  };
  LACUNA_END_EXPECT(refused(rig.qp->post_send({.sg_list = three}), "3 entries; this queue pair takes 2"));
  LACUNA_END_EXPECT(refused(rig.qp->post_recv({.sg_list = three}), "3 entries; this queue pair takes 2"));
  const nic::Sge large = rig.sge(0, 1001);
  LACUNA_END_EXPECT(refused(rig.qp->post_send({.sg_list = {&large, 1}}), "1001 bytes; this queue pair takes 1000"));
  const auto arrive = [&]() -> std::string {
    for (int i = 0; i < 4; ++i) LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    return {};
  };
  // Each queue is full while nothing moves: no message is sent yet, and then no receive is there.
  if (rank == 1) {
    for (int i = 0; i < 4; ++i) LACUNA_END_TRY(rig.qp->post_recv({}));
    LACUNA_END_EXPECT(refused(rig.qp->post_recv({}), "4 requests are outstanding in the receive queue"));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  for (int i = 0; rank == 0 && i < 4; ++i) LACUNA_END_TRY(rig.qp->post_send({}));
  if (std::string wrong = arrive(); !wrong.empty()) return wrong;
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {
    for (int i = 0; i < 4; ++i) LACUNA_END_TRY(rig.qp->post_send({}));
    LACUNA_END_EXPECT(refused(rig.qp->post_send({}), "4 requests are outstanding in the send queue, 1 more are posted; it takes 4"));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  for (int i = 0; rank == 1 && i < 4; ++i) LACUNA_END_TRY(rig.qp->post_recv({}));
  if (std::string wrong = arrive(); !wrong.empty()) return wrong;
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
class QueueLimits : public EveryPath {};
TEST_P(QueueLimits, AreNamedByRefusedPostsTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  LACUNA_NEEDS_LISTS(2);
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return refused_posts(GetParam(), rank, b); }), "");
}
INSTANTIATE_TEST_SUITE_P(Nic, QueueLimits, testing::ValuesIn(tested_paths()), path_test_name);

// A completion that finds its queue full ends the queue and the queue pairs on it; what was in it can still be had.
std::string overrun(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  if (path == nic::Path::wire) return {};  // devices make room for more than they are asked for
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes, {}, {}, rank == 0 ? 3 : 256));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  if (rank == 0) {
    const nic::Sge sge = rig.sge(0, 8);
    for (int i = 0; i < 5; ++i) {
      LACUNA_END_TRY(
          rig.qp->post_send({.wr_id = 7, .opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
    }
    const base::Error fault = LACUNA_END_TRY(rig.fault());
    LACUNA_END_EXPECT(fault.message.find("completion queue overrun (IBV_EVENT_CQ_ERR): its 3 entries are taken") != std::string::npos);
    LACUNA_END_EXPECT(rig.queue->overrun());
    for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    nic::Completion none;
    LACUNA_END_EXPECT(rig.context->poll(*rig.queue, {&none, 1}) == 0);
  } else {
    LACUNA_END_TRY(rig.fault());  // the other end is gone
    LACUNA_END_EXPECT(!rig.queue->overrun());
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
class CompletionQueues : public EveryPath {};
LACUNA_ON_EVERY_PATH(CompletionQueues, overrun)
INSTANTIATE_TEST_SUITE_P(Nic, CompletionQueues, testing::ValuesIn(tested_paths()), path_test_name);

TEST(Limits, OfTheContextAreNamed) {
  EXPECT_NE(open_tested({.max_sge = 33}).error().message.find("max_sge = 33"), std::string::npos);
  EXPECT_NE(nic::open("carrier-pigeon").error().message.find("this build has: local"), std::string::npos);
  const auto context = open_tested();
  ASSERT_TRUE(context);
  EXPECT_EQ((*context)->create_completion_queue(0).error().code, base::Code::limit);
  EXPECT_EQ((*context)->register_memory({}, {}).error().code, base::Code::invalid_argument);
  std::byte byte{};
  EXPECT_EQ((*context)->register_memory({&byte, 1}, {}, nic::MemoryKind::device).error().code, base::Code::unsupported);
  EXPECT_EQ((*context)->allocate(0).error().code, base::Code::invalid_argument);
  EXPECT_EQ((*context)->allocate(std::size_t{1} << 50).error().code, base::Code::out_of_memory);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
