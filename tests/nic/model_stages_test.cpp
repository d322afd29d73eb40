// What each stage costs, alone, so that a wrong sum cannot hide behind a good fit: one parameter costs 1000 ns, or 1 ns
// for each byte, all others cost nothing. First every time and every rate of the profile with every kind of request:
// none may be charged twice, or where it does not belong. Then what the number of entries and packets does to them, and
// what overlaps.
#include "tests/nic/model_rig.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "*ModelKinds.*");

using nic::Opcode;
using Result = base::Result<void>;

constexpr std::size_t kPayload = 1000;  // one packet

struct Took {
  std::int64_t initiator = 0, target = 0;
  bool operator==(const Took&) const = default;
};
void PrintTo(const Took& took, std::ostream* out) { *out << took.initiator << " ns and " << took.target << " ns"; }

struct Kind {
  const char* name;
  std::vector<std::pair<Took, std::vector<std::string>>> costs;  // of all other parameters nothing
  std::function<Result(ModelEnd&, int rank)> before, timed;
};

Result nothing(ModelEnd& /*end*/, int /*rank*/) { return {}; }
Result receive_at_1(ModelEnd& end, int rank) { return rank == 1 ? end.receive({0, kPayload}) : Result(); }
/// Posts at rank 0; whoever has a completion waits for it.
auto posts(nic::SendRequest request, std::vector<Cut> cuts, bool target_completes) {
  return [=](ModelEnd& end, int rank) -> Result {
    if (rank == 0) LACUNA_TRY(end.post(request, cuts));
    if (rank == 0 || target_completes) LACUNA_TRY(end.next());
    return {};
  };
}
auto binds(std::size_t entries, std::uint32_t repeat) {
  return [=](ModelEnd& end, int rank) -> Result {
    if (rank == 1) return {};
    const nic::IndirectKey key = LACUNA_TRY(end.context->create_indirect_key(16));
    const std::vector<nic::Sge> list(repeat == 0 ? entries : 0, end.sge(0, 8));
    const std::vector<nic::Strided> strided(repeat == 0 ? 0 : entries, {end.region.addr(), 8, 8, end.region.lkey()});
    const nic::Binding binding{.key = key.lkey(), .list = list, .repeat = repeat, .strided = strided};
    LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    LACUNA_TRY(end.next());
    return {};
  };
}

constexpr Took kBoth{1000, 1000}, kTwice{2000, 2000}, kInitiator{1000, 0}, kTarget{0, 1000}, kInitiatorTwice{2000, 0};
const std::vector<std::string> kPosting{"cpu.post_ns", "cpu.doorbell_ns", "nic.doorbell_ns", "cpu.poll_found_ns"};
std::vector<std::string> with_posting(std::vector<std::string> more) {
  more.insert(more.end(), kPosting.begin(), kPosting.end());
  return more;
}

const Kind kKinds[] = {
    {"Send",
     {{kBoth, with_posting({"cpu.post_sge_ns", "nic.request_ns", "nic.entry_ns", "nic.scatter_ns", "nic.dma_read_ns", "nic.dma_write_ns",
                            "nic.receive_ns", "nic.wire_gb_s"})},
      {kTwice, {"nic.packet_ns", "nic.translation_miss_ns", "nic.pcie_gb_s"}},
      {{2000, 1000}, {"nic.flight_ns"}},  // the acknowledgement flies too
      {kInitiator, {"nic.completion_ns"}},
      {kTarget, {"nic.receive_completion_ns"}}},
     receive_at_1,
     posts({}, {{0, kPayload}}, true)},
    {"WriteImm",
     {{kBoth, with_posting({"cpu.post_sge_ns", "nic.request_ns", "nic.entry_ns", "nic.scatter_ns", "nic.dma_read_ns", "nic.dma_write_ns",
                            "nic.receive_ns", "nic.wire_gb_s"})},
      {kTwice, {"nic.packet_ns", "nic.translation_miss_ns", "nic.pcie_gb_s"}},
      {{2000, 1000}, {"nic.flight_ns"}},
      {kInitiator, {"nic.completion_ns"}},
      {kTarget, {"nic.receive_completion_ns"}}},
     receive_at_1,
     posts({.opcode = Opcode::write_imm}, {{0, kPayload}}, true)},
    {"EmptySend",  // no data: no PCIe
     {{kBoth, with_posting({"nic.request_ns", "nic.receive_ns"})},
      {kTwice, {"nic.packet_ns"}},
      {{2000, 1000}, {"nic.flight_ns"}},
      {kInitiator, {"nic.completion_ns"}},
      {kTarget, {"nic.receive_completion_ns"}}},
     receive_at_1,
     posts({}, {}, true)},
    {"Write",
     {{kInitiator, with_posting({"cpu.post_sge_ns", "nic.request_ns", "nic.entry_ns", "nic.scatter_ns", "nic.dma_read_ns",
                                 "nic.dma_write_ns", "nic.completion_ns", "nic.wire_gb_s"})},
      {kInitiatorTwice, {"nic.packet_ns", "nic.translation_miss_ns", "nic.pcie_gb_s", "nic.flight_ns"}}},
     nothing,
     posts({.opcode = Opcode::write}, {{0, kPayload}}, false)},
    {"InlineWrite",  // nothing is fetched at the source
     {{kInitiator, with_posting({"cpu.post_sge_ns", "nic.request_ns", "nic.scatter_ns", "nic.dma_write_ns", "nic.completion_ns",
                                 "nic.translation_miss_ns"})},
      {{200, 0}, {"nic.wire_gb_s", "nic.pcie_gb_s"}},
      {kInitiatorTwice, {"nic.packet_ns", "nic.flight_ns"}}},
     nothing,
     posts({.opcode = Opcode::write, .inline_data = true}, {{0, 200}}, false)},
    {"Read",  // a request there, handled like one, and the data back
     {{kInitiator, with_posting({"cpu.post_sge_ns", "nic.entry_ns", "nic.scatter_ns", "nic.dma_read_ns", "nic.dma_write_ns",
                                 "nic.completion_ns", "nic.wire_gb_s"})},
      {kInitiatorTwice, {"nic.request_ns", "nic.flight_ns", "nic.translation_miss_ns", "nic.pcie_gb_s"}},
      {{3000, 0}, {"nic.packet_ns"}}},
     nothing,
     posts({.opcode = Opcode::read}, {{0, kPayload}}, false)},
    {"Bind",  // it fits into the request
     {{kInitiator, with_posting({"nic.request_ns", "nic.bind_ns", "nic.completion_ns", "register.key_ns"})},
      {{3000, 0}, {"cpu.bind_entry_ns"}},
      {{16'000, 0}, {"register.key_entry_ns"}}},
     nothing,
     binds(3, 0)},
    {"LongBind",
     {{kInitiator, with_posting({"nic.request_ns", "nic.bind_ns", "nic.completion_ns", "register.key_ns"})},
      {{12'000, 0}, {"cpu.bind_entry_ns", "nic.bind_entry_ns"}},
      {{16'000, 0}, {"register.key_entry_ns"}}},
     nothing,
     binds(12, 0)},
    {"StridedBind",
     {{kInitiator, with_posting({"nic.request_ns", "nic.bind_ns", "nic.completion_ns", "register.key_ns"})},
      {{2000, 0}, {"cpu.bind_entry_ns"}},
      {{16'000, 0}, {"register.key_entry_ns"}}},
     nothing,
     binds(2, 1000)},
};

class ModelKinds : public testing::TestWithParam<Kind> {};
TEST_P(ModelKinds, CostWhatTheirStagesDo) {
  const Kind& kind = GetParam();
  std::map<std::string, Took> expected;
  for (const auto& [took, names] : kind.costs) {
    for (const std::string& name : names) expected[name] = took;
  }
  Parameters all;
  for (const std::string& name : parameters_of("_ns")) all[name] = 1000;
  for (const std::string& name : parameters_of("_gb_s")) all[name] = 1;
  all.erase("cpu.poll_empty_ns");  // the grain of all waiting, below
  for (const auto& [name, value] : all) {
    Took took;
    run(free_world({{name, value}, {"limits.indirect_strided_entries", 4}}), [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      LACUNA_TRY(kind.before(end, rank));
      LACUNA_TRY(end.meet());
      const std::int64_t began = end.context->now();
      LACUNA_TRY(kind.timed(end, rank));
      (rank == 0 ? took.initiator : took.target) = end.context->now() - began;
      return end.meet();
    });
    EXPECT_EQ(took, expected[name]) << name;
    expected.erase(name);
  }
  EXPECT_TRUE(expected.empty()) << expected.begin()->first << " is no parameter";
}
INSTANTIATE_TEST_SUITE_P(Nic, ModelKinds, testing::ValuesIn(kKinds), [](const auto& info) { return std::string(info.param.name); });

// --- one end that writes, one that only has memory -------------------------------------------------------------------

TEST(ModelCpu, PaysADoorbellForAChain) {
  for (const auto& [name, single, chained] : {std::tuple{"cpu.doorbell_ns", 3000, 1000}, {"cpu.post_ns", 3000, 3000}}) {
    at_rank_0({{name, 1000}}, [&](ModelEnd& end) -> Result {
      const nic::SendRequest empty{.opcode = Opcode::write, .remote_addr = end.peer.addr, .rkey = end.peer.key, .signaled = false};
      const std::vector<nic::SendRequest> chain(3, empty);
      EXPECT_EQ(LACUNA_TRY(timed(end, [&] { return end.qp->post_chain(chain); })), chained);
      EXPECT_EQ(LACUNA_TRY(timed(end,
                                 [&]() -> Result {
                                   for (const nic::SendRequest& request : chain) LACUNA_TRY(end.qp->post_send(request));
                                   return {};
                                 })),
                single);
      return {};
    });
  }
}

TEST(ModelCpu, PaysForReceives) {
  const std::vector<Cut> two{{0, 1}, {8, 1}};
  at_rank_0({{"cpu.post_recv_ns", 1000}, {"cpu.post_sge_ns", 10}}, [&](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(timed(end, [&] { return end.receive(two); })), 1020);
    EXPECT_EQ(LACUNA_TRY(timed(end, [&] { return end.receive(std::span<const Cut>()); })), 1000);
    return {};
  });
}

TEST(ModelCpu, PaysForPollsAndIsIdleInFruitlessOnes) {
  at_rank_0({{"cpu.poll_empty_ns", 100}, {"cpu.poll_found_ns", 1000}, {"nic.flight_ns", 330}}, [](ModelEnd& end) -> Result {
    const std::int64_t busy = end.context->busy_ns();
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 1}})), 700 + 1000);  // there after 660: whole polls go by
    EXPECT_EQ(end.context->busy_ns() - busy, 1000);
    for (int i = 0; i < 3; ++i) LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 1}));
    while (end.context->now() < 10'000) end.context->poll(*end.queue, {});
    std::array<nic::Completion, 5> room;
    const std::int64_t began = end.context->now();
    EXPECT_EQ(end.context->poll(*end.queue, room), 3);
    EXPECT_EQ(end.context->now() - began, 3000);
    return {};
  });
  at_rank_0({}, [](ModelEnd& end) -> Result {  // 0 would never end
    const std::int64_t began = end.context->now();
    for (int i = 0; i < 5000; ++i) end.context->poll(*end.queue, {});
    EXPECT_EQ(end.context->now() - began, 5);
    return {};
  });
}

TEST(ModelEntries, AreFetchedOnceEach) {
  at_rank_0({{"nic.entry_ns", 1000}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 10}, {20, 10}, {40, 10}})), 3000);
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 10}, {20, 0}, {40, 10}})), 2000);  // no bytes, nothing to fetch
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 5000}})), 1000);                   // though it goes in five packets
    return {};
  });
}

TEST(ModelPackets, AreCutAtTheMtu) {
  at_rank_0({{"nic.packet_ns", 1000}, {"nic.mtu", 1024}}, [](ModelEnd& end) -> Result {
    for (const auto& [bytes, packets] : {std::pair{0, 1}, {1, 1}, {1024, 1}, {1025, 2}, {2048, 2}, {2049, 3}}) {
      // The receiver's engine is one packet behind the sender's.
      EXPECT_EQ(LACUNA_TRY(write(end, {{0, static_cast<std::size_t>(bytes)}})), (packets + 1) * 1000) << bytes;
    }
    return {};
  });
}

TEST(ModelWire, CarriesBytesAndHeaders) {
  at_rank_0({{"nic.wire_gb_s", 1}, {"nic.header_bytes", 78}}, [](ModelEnd& end) -> Result {
    for (const auto& [bytes, wire] : {std::pair{0, 78}, {1000, 1078}, {1024, 1102}, {1025, 1025 + 2 * 78}, {2048, 2048 + 2 * 78}})
      EXPECT_EQ(LACUNA_TRY(write(end, {{0, static_cast<std::size_t>(bytes)}})), wire) << bytes;
    return {};
  });
}

TEST(ModelPcie, TakesBytesInTurnAndLatenciesAtOnce) {
  at_rank_0({{"nic.pcie_gb_s", 1}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 3072}})), 4 * 1024);  // the last packet is written when all have been read
    return {};
  });
  at_rank_0({{"nic.dma_read_ns", 1000}, {"nic.dma_write_ns", 500}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 3072}})), 1500);
    return {};
  });
}

// Of the sender's tries, at 0, 1000, 2000 ..., the first one behind the receive finds it.
TEST(ModelNotReady, WaitsInWholeSteps) {
  for (const auto& [late, done] : {std::pair{1, 1000}, {999, 1000}, {1001, 2000}, {2500, 3000}}) {
    run(free_world({{"nic.not_ready_ns", 1000}, {"register.undo_ns", late}}), [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      nic::Region passing = LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {}));
      LACUNA_TRY(end.meet());
      EXPECT_EQ(LACUNA_TRY(timed(end,
                                 [&]() -> Result {
                                   if (rank == 0) LACUNA_TRY(end.post({}, {0, 1}));
                                   if (rank == 1) passing = nic::Region();
                                   if (rank == 1) LACUNA_TRY(end.receive({0, 1}));
                                   LACUNA_TRY(end.next());
                                   return {};
                                 })),
                done);
      LACUNA_TRY(end.meet());
      return {};
    });
  }
}

// --- what overlaps, and what queues ----------------------------------------------------------------------------------

// Of two slow stages the slower one sets the pace; the other one is seen once, when the pipe fills or empties.
TEST(ModelOverlap, IsThatOfAPipeline) {
  constexpr int packets = 100;
  at_rank_0({{"nic.packet_ns", 100}, {"nic.wire_gb_s", 1}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, packets * 1024}})), 100 + packets * 1024 + 100);
    return {};
  });
  at_rank_0({{"nic.packet_ns", 2000}, {"nic.wire_gb_s", 1}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, packets * 1024}})), packets * 2000 + 1024 + 2000);
    return {};
  });
  // Messages follow one another too
  at_rank_0({{"nic.request_ns", 1000}, {"nic.flight_ns", 5000}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(timed(end,
                               [&]() -> Result {
                                 for (int i = 0; i < 10; ++i) LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 1}));
                                 for (int i = 0; i < 10; ++i) LACUNA_TRY(end.next());
                                 return {};
                               })),
              10 * 1000 + 2 * 5000);
    return {};
  });
}

// When the last of several writers is done. Each writes ten packets at 1 ns for each byte.
std::int64_t writers(int ranks, std::vector<std::pair<int, int>> pairs) {
  std::int64_t last = 0;
  run(free_world({{"nic.wire_gb_s", 1}}, ranks), [&](int rank, nic::World& world) -> Result {
    std::vector<ModelEnd> ends;
    for (const auto& [from, to] : pairs) {
      if (rank == from || rank == to) ends.push_back(LACUNA_TRY(ModelEnd::make(world, rank, rank == from ? to : from, {})));
    }
    for (int other = 0; other < ranks; ++other) {
      if (other != rank) LACUNA_TRY(barrier(world.bootstrap(rank, other)));
    }
    const std::int64_t began = world.context(rank).now();
    std::size_t i = 0;
    for (const auto& [from, to] : pairs) {
      if (rank == from) LACUNA_TRY(ends[i].post({.opcode = Opcode::write}, {0, 10 * 1024}));
      i += rank == from || rank == to ? 1 : 0;
    }
    i = 0;
    for (const auto& [from, to] : pairs) {
      if (rank == from) LACUNA_TRY(ends[i].next());
      i += rank == from || rank == to ? 1 : 0;
    }
    last = std::max(last, world.context(rank).now() - began);
    for (const ModelEnd& end : ends) LACUNA_TRY(end.meet());
    return {};
  });
  return last;
}
TEST(ModelPorts, AreShared) {
  constexpr std::int64_t alone = 10 * 1024;
  EXPECT_EQ(writers(2, {{0, 1}}), alone);
  EXPECT_EQ(writers(3, {{0, 2}, {1, 2}}), 2 * alone);  // at the receiver's
  EXPECT_EQ(writers(3, {{0, 1}, {0, 2}}), 2 * alone);  // at the sender's
  EXPECT_EQ(writers(4, {{0, 1}, {2, 3}}), alone);      // not those of others
  EXPECT_EQ(writers(2, {{0, 1}, {1, 0}}), alone);      // both directions at once
  EXPECT_EQ(writers(4, {{0, 3}, {1, 3}, {2, 3}}), 3 * alone);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
