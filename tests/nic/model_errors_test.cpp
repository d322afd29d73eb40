// Every misuse has verbs' status in virtual time too; what is behind it is flushed and moves no byte, and nothing
// hangs. Unlike on the local NIC, an end does not learn that its peer failed at home: as on a network, it learns when
// it needs the peer, or when the peer closes.
#include <algorithm>

#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

constexpr std::size_t kBytes = 8192;

void both(const ModelEnd::Options& options, const std::function<Result(ModelEnd&, int rank)>& body) {
  run({.profile = kProfile}, [&](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, 1 - rank, rank == 1 ? options : ModelEnd::Options{.bytes = options.bytes}));
    std::memset(end.buffer.data(), rank + 1, options.bytes);
    LACUNA_TRY(body(end, rank));
    return end.meet();
  });
}
void both(const std::function<Result(ModelEnd&, int rank)>& body) { both({.bytes = kBytes}, body); }
void expect_untouched(const ModelEnd& end, int rank) {
  EXPECT_TRUE(std::ranges::all_of(end.buffer.bytes(), [&](std::byte b) { return b == static_cast<std::byte>(rank + 1); }));
}
void expect_refused(const Result& result, base::Code code, std::string_view text) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
}

struct Bad {
  const char* name;
  Opcode opcode;
  Status at_sender;
  Status at_receiver = Status::success;  // of a posted receive; success if none is posted
  std::size_t recv_bytes = 0;
  nic::Rights rights;  // of the receiver's memory
  // What to post, given the honest request.
  void (*spoil)(nic::SendRequest& request, nic::Sge& sge) = [](nic::SendRequest&, nic::Sge&) {};
  void (*spoil_recv)(nic::Sge& sge) = [](nic::Sge&) {};
};
const Bad kBad[] = {
    {.name = "LocalByteBeyondRegion",
     .opcode = Opcode::write,
     .at_sender = Status::loc_prot_err,
     .spoil = [](nic::SendRequest&, nic::Sge& sge) { sge.addr += kBytes - 99; }},
    {.name = "LocalByteBeforeRegion",
     .opcode = Opcode::send,
     .at_sender = Status::loc_prot_err,
     .spoil = [](nic::SendRequest&, nic::Sge& sge) { sge.addr -= 1; }},
    {.name = "LocalWrongKey",
     .opcode = Opcode::send,
     .at_sender = Status::loc_prot_err,
     .spoil = [](nic::SendRequest&, nic::Sge& sge) { sge.lkey += 1; }},
    {.name = "ReadIntoWrongKey",
     .opcode = Opcode::read,
     .at_sender = Status::loc_prot_err,
     .spoil = [](nic::SendRequest&, nic::Sge& sge) { sge.lkey += 1; }},
    {.name = "NoKeyToTakeBack",
     .opcode = Opcode::invalidate,
     .at_sender = Status::mw_bind_err,
     .spoil = [](nic::SendRequest& request, nic::Sge& sge) { request.rkey = sge.lkey; }},
    {.name = "RemoteByteBeyondRegion",
     .opcode = Opcode::write,
     .at_sender = Status::rem_access_err,
     .spoil = [](nic::SendRequest& request, nic::Sge&) { request.remote_addr += kBytes - 99; }},
    {.name = "RemoteByteBeforeRegion",
     .opcode = Opcode::write_imm,
     .at_sender = Status::rem_access_err,
     .spoil = [](nic::SendRequest& request, nic::Sge&) { request.remote_addr -= 1; }},
    {.name = "RemoteAddressWraps",
     .opcode = Opcode::write,
     .at_sender = Status::rem_access_err,
     .spoil = [](nic::SendRequest& request, nic::Sge&) { request.remote_addr = ~std::uint64_t{0} - 8; }},
    {.name = "RemoteWrongKey",
     .opcode = Opcode::write,
     .at_sender = Status::rem_access_err,
     .spoil = [](nic::SendRequest& request, nic::Sge&) { request.rkey += 1; }},
    {.name = "RemoteWithoutRight", .opcode = Opcode::write, .at_sender = Status::rem_access_err, .rights = {.remote_write = false}},
    {.name = "ReadBeyondRegion",
     .opcode = Opcode::read,
     .at_sender = Status::rem_access_err,
     .spoil = [](nic::SendRequest& request, nic::Sge&) { request.remote_addr += kBytes - 99; }},
    {.name = "ReadWithoutRight", .opcode = Opcode::read, .at_sender = Status::rem_access_err, .rights = {.remote_read = false}},
    {.name = "ReceiveTooShort",
     .opcode = Opcode::send,
     .at_sender = Status::rem_inv_req_err,
     .at_receiver = Status::loc_len_err,
     .recv_bytes = 99},
    {.name = "ReceiveWithoutRight",
     .opcode = Opcode::send,
     .at_sender = Status::rem_op_err,
     .at_receiver = Status::loc_prot_err,
     .recv_bytes = 100,
     .rights = {.local_write = false}},
    {.name = "ReceiveBeyondRegion",
     .opcode = Opcode::send,
     .at_sender = Status::rem_op_err,
     .at_receiver = Status::loc_prot_err,
     .recv_bytes = 100,
     .spoil_recv = [](nic::Sge& sge) { sge.addr += kBytes - 50; }},
};

// The bad request, though unsignaled, completes with its status; all around it were posted before it ran, and are
// flushed.
class ModelMisuse : public testing::TestWithParam<Bad> {};
TEST_P(ModelMisuse, HasItsStatusAndFlushesWhatIsBehind) {
  const Bad& bad = GetParam();
  both({.bytes = kBytes, .rights = bad.rights}, [&](ModelEnd& end, int rank) -> Result {
    const bool local = bad.at_sender == Status::loc_prot_err || bad.at_sender == Status::mw_bind_err;
    if (rank == 1) {
      nic::Sge sge = end.sge(0, bad.recv_bytes);
      bad.spoil_recv(sge);
      if (bad.at_receiver != Status::success) LACUNA_TRY(end.qp->post_recv({.wr_id = 3, .sg_list = {&sge, 1}}));
      LACUNA_TRY(end.receive({0, 100}, 4));
      LACUNA_TRY(end.meet());
      if (bad.at_receiver != Status::success) {
        const nic::Completion done = LACUNA_TRY(end.next());
        EXPECT_EQ(done.wr_id, 3U);
        EXPECT_EQ(done.status, bad.at_receiver);
      }
      if (!local) {
        const nic::Completion flushed = LACUNA_TRY(end.next());
        EXPECT_EQ(flushed.wr_id, 4U);
        EXPECT_EQ(flushed.status, Status::wr_flush_err);
      }
      LACUNA_TRY(end.meet());
      EXPECT_EQ(end.qp->fault() == nullptr, local);
      expect_untouched(end, rank);
      return {};
    }
    LACUNA_TRY(end.meet());
    nic::Sge sge = end.sge(0, 100);
    nic::SendRequest request{.wr_id = 1, .opcode = bad.opcode, .remote_addr = end.peer.addr, .rkey = end.peer.key, .signaled = false};
    bad.spoil(request, sge);
    request.sg_list = {&sge, 1};
    LACUNA_TRY(end.qp->post_send(request));
    LACUNA_TRY(end.post({.wr_id = 2, .opcode = Opcode::write, .signaled = false}, {0, 100}));
    LACUNA_TRY(end.post({.wr_id = 3, .opcode = Opcode::read}, {0, 100}));
    LACUNA_TRY(end.post({.wr_id = 4, .opcode = Opcode::write, .fence = true}, {0, 100}));
    const nic::Completion first = LACUNA_TRY(end.next());
    EXPECT_EQ(first.wr_id, 1U);
    EXPECT_EQ(first.status, bad.at_sender) << status_name(first.status);
    const std::int64_t failed = end.context->now();
    LACUNA_TRY(end.post({.wr_id = 5}, {0, 100}));
    for (std::uint64_t id = 2; id <= 5; ++id) {
      const nic::Completion flushed = LACUNA_TRY(end.next());
      EXPECT_EQ(flushed.wr_id, id);
      EXPECT_EQ(flushed.status, Status::wr_flush_err) << status_name(flushed.status);
    }
    EXPECT_LT(end.context->now() - failed, 1'000'000);  // without a timeout
    LACUNA_TRY(end.receive({0, 8}, 6));
    EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::wr_flush_err);
    EXPECT_NE(end.qp->fault(), nullptr);
    EXPECT_EQ(end.qp->fault()->code, base::Code::transfer);
    LACUNA_TRY(end.meet());
    expect_untouched(end, rank);
    return {};
  });
}
INSTANTIATE_TEST_SUITE_P(Nic, ModelMisuse, testing::ValuesIn(kBad), [](const auto& info) { return std::string(info.param.name); });

// What was posted before a bad request is done, what came behind it is not.
TEST(ModelMisuse, LeavesWhatWasBeforeItAlone) {
  both([](ModelEnd& end, int rank) -> Result {
    if (rank == 0) {
      for (std::uint64_t i = 0; i < 5; ++i)
        LACUNA_TRY(end.post({.wr_id = i, .opcode = Opcode::write}, {0, 100}, i == 3 ? kBytes : i * 1000));
      for (std::uint64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(LACUNA_TRY(end.next()).status, i < 3 ? Status::success : i == 3 ? Status::rem_access_err : Status::wr_flush_err);
      }
    }
    LACUNA_TRY(end.meet());
    for (std::size_t i = 0; i < 5 && rank == 1; ++i) {
      EXPECT_EQ(end.buffer.data()[i * 1000 + 99], i < 3 ? std::byte{1} : std::byte{2});
      EXPECT_EQ(end.buffer.data()[i * 1000 + 100], std::byte{2});
    }
    return {};
  });
}

// The receives before one that fails complete before it.
TEST(ModelMisuse, FailsReceivesInTheirOrder) {
  both([](ModelEnd& end, int rank) -> Result {
    for (std::uint64_t id = 1; id <= 3 && rank == 1; ++id) LACUNA_TRY(end.receive({0, 8}, id));
    LACUNA_TRY(end.meet());
    if (rank == 0) LACUNA_TRY(end.post({}, {0, 8}));
    if (rank == 0) LACUNA_TRY(end.post({}, {0, 9}));
    const std::vector<Status> expected = rank == 0 ? std::vector{Status::success, Status::rem_inv_req_err}
                                                   : std::vector{Status::success, Status::loc_len_err, Status::wr_flush_err};
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const nic::Completion done = LACUNA_TRY(end.next());
      EXPECT_EQ(done.status, expected[i]);
      EXPECT_EQ(done.wr_id, rank == 0 ? 0 : i + 1);
    }
    return {};
  });
}

enum class Spoil { never_bound, invalidated, destroyed, beyond, no_right, regions_right, region_gone, nested };
class ModelKeyMisuse : public testing::TestWithParam<std::pair<const char*, Spoil>> {};
INSTANTIATE_TEST_SUITE_P(Nic, ModelKeyMisuse,
                         testing::Values(std::pair{"NeverBound", Spoil::never_bound}, std::pair{"Invalidated", Spoil::invalidated},
                                         std::pair{"Destroyed", Spoil::destroyed}, std::pair{"BeyondItsEnd", Spoil::beyond},
                                         std::pair{"WithoutRight", Spoil::no_right}, std::pair{"RegionWithoutRight", Spoil::regions_right},
                                         std::pair{"RegionDeregistered", Spoil::region_gone}, std::pair{"Nested", Spoil::nested}),
                         [](const auto& info) { return std::string(info.param.first); });
TEST_P(ModelKeyMisuse, IsAnAccessError) {
  const Spoil spoil = GetParam().second;
  for (const bool at_home : {false, true}) {  // the peer writes through the key, or its owner receives
    both([&](ModelEnd& end, int rank) -> Result {
      nic::IndirectKey key = LACUNA_TRY(end.context->create_indirect_key(4));
      const nic::IndirectKey inner = LACUNA_TRY(end.context->create_indirect_key(4));
      const bool withheld = spoil == Spoil::regions_right;
      nic::Region region =
          LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {.local_write = !withheld, .remote_write = !withheld}));
      const auto bind = [&](std::uint32_t which, nic::Rights rights, nic::Sge piece) -> Result {
        const nic::Binding binding{.key = which, .rights = rights, .list = {&piece, 1}};
        LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
        EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
        return {};
      };
      const nic::Sge piece{region.addr(), 1000, region.lkey()};
      LACUNA_TRY(bind(inner.lkey(), {}, piece));
      const std::uint32_t rkey = key.rkey();
      const nic::Rights rights{.local_write = spoil != Spoil::no_right, .remote_write = spoil != Spoil::no_right};
      if (spoil != Spoil::never_bound) LACUNA_TRY(bind(rkey, rights, spoil == Spoil::nested ? nic::Sge{0, 1000, inner.lkey()} : piece));
      if (spoil == Spoil::invalidated) {
        LACUNA_TRY(end.qp->post_send({.opcode = Opcode::invalidate, .rkey = rkey}));
        EXPECT_EQ(LACUNA_TRY(end.next()).opcode, Opcode::invalidate);
      }
      if (spoil == Spoil::destroyed) key = nic::IndirectKey();
      if (spoil == Spoil::region_gone) region = nic::Region();
      const std::uint32_t peer = LACUNA_TRY(swap(*end.bootstrap, rkey));
      const std::uint64_t at = spoil == Spoil::beyond ? 901 : 0;
      const nic::Sge into{at, 100, rkey};
      if (rank == 1 && at_home) LACUNA_TRY(end.qp->post_recv({.sg_list = {&into, 1}}));
      LACUNA_TRY(end.meet());
      if (rank == 0) {
        LACUNA_TRY(end.post({.opcode = at_home ? Opcode::send : Opcode::write, .remote_addr = at, .rkey = peer}, {0, 100}));
        EXPECT_EQ(LACUNA_TRY(end.next()).status, at_home ? Status::rem_op_err : Status::rem_access_err);
      }
      LACUNA_TRY(end.meet());
      if (rank == 1 && at_home) {
        EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::loc_prot_err);
      }
      expect_untouched(end, rank);
      return {};
    });
  }
}

// A region that is gone cannot be reached, and its key is not its successor's.
TEST(ModelDeregistration, EndsAccess) {
  run(free_world({{"nic.flight_ns", 1000}}), [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    const std::uint32_t old = end.region.rkey();
    std::memset(end.buffer.data(), rank + 1, end.buffer.size());
    LACUNA_TRY(end.meet());
    if (rank == 0) LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 8}));
    if (rank == 1) {
      end.region = nic::Region();  // earlier than what flies arrives
      end.region = LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {}));
      EXPECT_NE(end.region.rkey(), old);
    } else {
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::rem_access_err);
    }
    LACUNA_TRY(end.meet());
    expect_untouched(end, rank);
    return {};
  });
  // What landed is not yet in memory when the region goes: it is not written any more.
  run(free_world({{"nic.dma_write_ns", 1000}, {"register.undo_ns", 500}}), [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    std::memset(end.buffer.data(), rank + 1, end.buffer.size());
    LACUNA_TRY(end.meet());
    if (rank == 0) LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 8}));
    if (rank == 1) end.region = nic::Region();
    if (rank == 0) LACUNA_TRY(end.next());
    LACUNA_TRY(end.meet());
    expect_untouched(end, rank);
    return {};
  });
}

// --- limits ----------------------------------------------------------------------------------------------------------

// What a post refuses at once: the message names the limit, and the queue pair goes on working.
TEST(ModelLimits, AreNamedByRefusedPosts) {
  nic::WorldOptions options{.profile = kProfile,
                            .limits = {.max_sge = 2,
                                       .max_inline = 24,
                                       .max_send_wr = 4,
                                       .max_recv_wr = 4,
                                       .max_message_bytes = 1000,
                                       .indirect = {.keys = 2, .entries = 5, .strided_entries = 2, .stride = 1000}}};
  options.overrides = R"({"limits.indirect_strided_entries": 100})";
  run(options, [](int rank, nic::World& world) -> Result {
    const ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, 1 - rank, {.depth = 4}));
    const std::vector<Cut> three(3, {0, 1});
    expect_refused(end.post({}, three), base::Code::limit, "3 entries; this queue pair takes 2");
    expect_refused(end.post({.opcode = Opcode::read}, three), base::Code::limit, "3 entries; this queue pair takes 2");
    expect_refused(end.receive(three), base::Code::limit, "3 entries; this queue pair takes 2");
    expect_refused(end.post({}, {0, 1001}), base::Code::limit, "1001 bytes; this queue pair takes 1000");
    expect_refused(end.post({.inline_data = true}, {0, 25}), base::Code::limit, "25 bytes inline; this queue pair takes 24");
    const auto bind = [&](const nic::Binding& binding) { return end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}); };
    EXPECT_NE(end.context->create_indirect_key(6).error().message.find("takes 1 to 5"), std::string::npos);
    const nic::IndirectKey key = LACUNA_TRY(end.context->create_indirect_key(3));
    {
      const nic::IndirectKey second = LACUNA_TRY(end.context->create_indirect_key(5));
      EXPECT_NE(end.context->create_indirect_key(1).error().message.find("2 indirect keys exist"), std::string::npos);
    }
    EXPECT_TRUE(end.context->create_indirect_key(1));
    const std::vector<nic::Sge> four(4, end.sge(0, 8));
    expect_refused(bind({.key = key.lkey(), .list = four}), base::Code::limit, "4 entries; this key takes 3 in a list, 2 with strides");
    const nic::Strided wide{end.region.addr(), 8, 1001, end.region.lkey()};
    expect_refused(bind({.key = key.lkey(), .repeat = 2, .strided = {&wide, 1}}), base::Code::limit, "an indirect key takes 1000");
    expect_refused(end.qp->post_send({.opcode = Opcode::bind}), base::Code::invalid_argument, "without a binding");
    LACUNA_TRY(end.meet());
    for (int i = 0; i < 4; ++i) LACUNA_TRY(rank == 0 ? end.qp->post_send({}) : end.qp->post_recv({}));
    expect_refused(rank == 0 ? end.qp->post_send({}) : end.qp->post_recv({}), base::Code::limit, "4 requests are outstanding in the");
    for (int i = 0; i < 4; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
    return end.meet();
  });
}

// Silent requests keep their places until a later completion was polled.
TEST(ModelLimits, CountSilentRequests) {
  both([](ModelEnd& end, int rank) -> Result {
    for (int round = 0; round < 3 && rank == 0; ++round) {
      for (int i = 0; i < 64; ++i) LACUNA_TRY(end.post({.opcode = Opcode::write, .signaled = i == 63}, {0, 8}));
      EXPECT_EQ(end.post({.opcode = Opcode::write}, {0, 8}).error().code, base::Code::limit);
      LACUNA_TRY(end.next());
    }
    return {};
  });
}

TEST(ModelLimits, OfTheContextAreNamed) {
  const auto world = nic::simulate({.profile = kProfile}).value();
  nic::Context& context = world->context(0);
  EXPECT_EQ(context.create_completion_queue(0).error().code, base::Code::limit);
  EXPECT_EQ(context.register_memory({}, {}).error().code, base::Code::invalid_argument);
  std::byte byte{};
  EXPECT_EQ(context.register_memory({&byte, 1}, {}, nic::MemoryKind::device).error().code, base::Code::unsupported);
  EXPECT_EQ(context.allocate(0).error().code, base::Code::invalid_argument);
  EXPECT_EQ(context.allocate(std::size_t{1} << 50).error().code, base::Code::out_of_memory);
  const auto queue = context.create_completion_queue(4).value();
  EXPECT_EQ(context.connect(world->bootstrap(0, 1), *queue, {.path = nic::Path::mapped}).error().code, base::Code::unsupported);
  EXPECT_EQ(context.connect(world->bootstrap(0, 1), *queue, {.max_send_wr = 1 << 24}).error().code, base::Code::limit);
}

// A completion that finds its queue full ends the queue and the queue pairs on it; what was in it can still be had.
TEST(ModelCompletionQueue, OverrunsAndSaysSo) {
  run({.profile = kProfile}, [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, 1 - rank, {.completions = 3}));
    if (rank == 0) {
      for (int i = 0; i < 5; ++i) LACUNA_TRY(end.post({.wr_id = 7, .opcode = Opcode::write}, {0, 8}));
      const base::Error fault = LACUNA_TRY(end.fault());
      EXPECT_NE(fault.message.find("completion queue overrun (IBV_EVENT_CQ_ERR): its 3 entries are taken"), std::string::npos);
      EXPECT_TRUE(end.queue->overrun());
      for (int i = 0; i < 3; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
      EXPECT_FALSE(end.next(1000));
    }
    EXPECT_TRUE(rank == 0 || !end.queue->overrun());
    return end.meet();
  });
}

// What an end has sent when it closes has left its memory, which may hold anything afterwards.
TEST(ModelClosing, MovesWhatWasThereWhenItsSenderClosed) {
  both([](ModelEnd& end, int rank) -> Result {
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, kBytes}));
      end.qp.reset();
      std::memset(end.buffer.data(), 9, kBytes);
      return {};
    }
    EXPECT_EQ(LACUNA_TRY(end.fault()).code, base::Code::peer_lost);
    expect_untouched(end, 0);
    return {};
  });
}
// The same of memory that is read, wherever the answer is.
TEST(ModelClosing, AnswersAReadWithWhatWasThere) {
  int answered = 0;
  for (std::int64_t delay = 0; delay < 6000; delay += 50) {
    both([&](ModelEnd& end, int rank) -> Result {
      LACUNA_TRY(end.meet());
      if (rank == 0) {
        const std::int64_t until = end.context->now() + delay;
        while (end.context->now() < until && end.context->wait(until)) {
        }
        end.qp.reset();
        std::memset(end.buffer.data(), 9, kBytes);
        return {};
      }
      LACUNA_TRY(end.post({.opcode = Opcode::read}, {0, kBytes}));
      if (LACUNA_TRY(end.next()).status != Status::success) return {};
      ++answered;
      expect_untouched(end, 0);
      return {};
    });
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, 120);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
