// Processes of one node share a NIC: each stage is one resource for all of them, in the order of their times. What they
// send one another is turned back in the NIC. The nanoseconds are worked out by hand.
#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

constexpr std::size_t kBytes = 1000;

nic::WorldOptions nodes(const Parameters& on, int ranks, int ranks_per_node) {
  nic::WorldOptions options = free_world(on, ranks);
  options.ranks_per_node = ranks_per_node;
  return options;
}

// Of four ranks, 0 and 1 write 1000 bytes at the same time, each to the one at that distance. What it takes the first
// one, and the other.
std::array<std::int64_t, 2> writes(const nic::WorldOptions& options, int distance) {
  std::array<std::int64_t, 2> took{};
  run(options, [&](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, rank ^ distance, {}));
    LACUNA_TRY(end.meet());
    if (rank < 2) took[static_cast<std::size_t>(rank)] = LACUNA_TRY(write(end, std::vector<Cut>{{0, kBytes}}));
    return end.meet();
  });
  std::ranges::sort(took);
  return took;
}

using Times = std::array<std::int64_t, 2>;

// Alone a message takes so long at a stage. Two of one node wait for one another there, two of different nodes do not.
TEST(ModelNodes, ShareEachStageOfTheirNic) {
  const struct {
    Parameters on;
    Times apart, together;
  } stages[] = {
      {{{"nic.request_ns", 500}}, {500, 500}, {500, 1000}},    // the send engine
      {{{"nic.wire_gb_s", 1}}, {1000, 1000}, {1000, 2000}},    // one port, then the other one's: both at once
      {{{"nic.pcie_gb_s", 1}}, {2000, 2000}, {2000, 3000}},    // read here, written there
      {{{"nic.packet_ns", 100}}, {200, 200}, {200, 300}},      // both engines
      {{{"nic.flight_ns", 700}}, {1400, 1400}, {1400, 1400}},  // there and back, at no cost to others
      {{{"cpu.post_ns", 60}}, {60, 60}, {60, 60}},             // a CPU each
  };
  for (const auto& [on, apart, together] : stages) {
    EXPECT_EQ(writes(nodes(on, 4, 1), 2), apart) << on.begin()->first;
    EXPECT_EQ(writes(nodes(on, 4, 2), 2), together) << on.begin()->first;
  }
}

// Within a node nothing goes by the wire: two messages between the same two ranks, one each way.
TEST(ModelNodes, TurnTheirOwnMessagesBack) {
  const Parameters wire{{"nic.wire_gb_s", 1}, {"nic.flight_ns", 700}};
  EXPECT_EQ(writes(nodes(wire, 4, 1), 1), (Times{2400, 2400}));  // a wire each way, a flight there and one back
  EXPECT_EQ(writes(nodes(wire, 4, 2), 1), (Times{0, 0}));
  EXPECT_EQ(writes(nodes({{"nic.pcie_gb_s", 1}}, 4, 2), 1), (Times{2000, 3000}));  // read twice, written twice
  EXPECT_EQ(writes(nodes({{"nic.request_ns", 500}}, 4, 4), 2), (Times{500, 1000}));
}

// What comes with its request does not overtake what PCIe still reads: a flag behind data says that the data is there.
TEST(ModelNodes, KeepTheOrderOfWhatTheyTurnBack) {
  run(nodes({{"nic.dma_read_ns", 5000}, {"nic.pcie_gb_s", 1}}, 2, 2), [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    std::memset(end.buffer.data(), rank == 0 ? 7 : 0, 2 * kBytes);
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, kBytes}, 8));
      LACUNA_TRY(end.post({.opcode = Opcode::write, .inline_data = true}, {0, 8}));
    } else {
      while (end.context->load_flag(reinterpret_cast<const std::uint64_t*>(end.buffer.data())) == 0)
        LACUNA_TRY(end.context->wait(end.context->now() + kSecond));
      EXPECT_EQ(end.buffer.data()[8], std::byte{7});
      EXPECT_EQ(end.buffer.data()[kBytes + 7], std::byte{7});
    }
    return end.meet();
  });
}

// A process that is ahead asks a shared NIC no sooner than others whose clocks are behind.
TEST(ModelNodes, AreServedInTheOrderOfTheirTimes) {
  Times ended{};
  run(nodes({{"nic.request_ns", 500}, {"nic.flight_ns", 5000}, {"register.call_ns", 300}}, 4, 2),
      [&](int rank, nic::World& world) -> Result {
        ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, rank ^ 2, {}));
        LACUNA_TRY(end.meet());
        const std::int64_t began = end.context->now();
        if (rank == 0) LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {}));  // 300 later than rank 1
        if (rank < 2) {
          LACUNA_TRY(write(end, std::vector<Cut>{{0, 8}}));
          ended[static_cast<std::size_t>(rank)] = end.context->now() - began;
        }
        return end.meet();
      });
  EXPECT_EQ(ended, (Times{500 + 500 + 10'000, 500 + 10'000}));
}

// Each knows its own memory only, and no key is given twice.
TEST(ModelNodes, HaveKeysOfTheirOwn) {
  std::array<std::uint32_t, 2> keys{};
  run(nodes({}, 2, 2), [&](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    keys[static_cast<std::size_t>(rank)] = end.region.rkey();
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      const nic::Sge theirs{end.peer.addr, 8, end.peer.key};
      LACUNA_TRY(end.qp->post_send({.opcode = Opcode::write, .sg_list = {&theirs, 1}, .remote_addr = end.peer.addr, .rkey = end.peer.key}));
      EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::loc_prot_err);
    }
    return end.meet();
  });
  EXPECT_NE(keys[0], keys[1]);
}

TEST(ModelNodes, MayBeUneven) {
  EXPECT_EQ(nic::simulate({.profile = kProfile, .ranks = 5, .ranks_per_node = 2}).value()->ranks(), 5);
  EXPECT_EQ(nic::simulate({.profile = kProfile, .ranks = 5, .ranks_per_node = 9}).value()->ranks(), 5);
  for (const int each : {0, -1})
    EXPECT_EQ(nic::simulate({.profile = kProfile, .ranks = 5, .ranks_per_node = each}).error().code, base::Code::limit);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
