// What moves in virtual time, in which order, and what completes when: verbs' meaning, whatever the stages cost.
#include <algorithm>
#include <numeric>

#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 131 + (i >> 8) + 1); }
void fill(const ModelEnd& end, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) end.buffer.data()[i] = pattern(i);
}
/// All of the memory is zero but for the pattern's bytes from `from` on, in these places one after the other.
void expect_only(const ModelEnd& end, std::size_t from, std::span<const Cut> cuts) {
  std::vector<std::byte> expected(end.buffer.size(), std::byte{0});
  for (const Cut& cut : cuts) {
    for (std::size_t i = 0; i < cut.length; ++i) expected[cut.offset + i] = pattern(from++);
  }
  EXPECT_TRUE(std::ranges::equal(end.buffer.bytes(), expected));
}
void expect(const nic::Completion& done, std::uint64_t wr_id, Opcode opcode, std::uint64_t bytes = 0) {
  EXPECT_EQ(done.wr_id, wr_id);
  EXPECT_EQ(done.status, Status::success);
  EXPECT_EQ(done.opcode, opcode);
  EXPECT_EQ(done.byte_len, bytes);
}

// Calibrated, and with stages of which each is the slowest in turn: what moves must not depend on it.
class ModelMessages : public testing::TestWithParam<std::pair<const char*, Parameters>> {
 protected:
  /// Two connected ends; they part together.
  static void both(const std::function<Result(ModelEnd&, int rank)>& body) {
    const Parameters& on = GetParam().second;
    const nic::WorldOptions options = on.empty() ? nic::WorldOptions{.profile = kProfile} : free_world(on);
    run(options, [&](int rank, nic::World& world) -> Result {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
      LACUNA_TRY(body(end, rank));
      return end.meet();
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Nic, ModelMessages,
                         testing::Values(std::pair{"Calibrated", Parameters{}}, std::pair{"Free", Parameters{{"nic.mtu", 256}}},
                                         std::pair{"SlowEngine", Parameters{{"nic.packet_ns", 1000}}},
                                         std::pair{"SlowScatter", Parameters{{"nic.scatter_ns", 1e5}}},
                                         std::pair{"SlowPcie", Parameters{{"nic.pcie_gb_s", 0.01}}},
                                         std::pair{"SlowWire", Parameters{{"nic.wire_gb_s", 0.01}}},
                                         std::pair{"SlowWrites", Parameters{{"nic.dma_write_ns", 1e6}}},
                                         std::pair{"Far", Parameters{{"nic.flight_ns", 1e7}, {"cpu.poll_empty_ns", 20}}}),
                         [](const auto& info) { return std::string(info.param.first); });

TEST_P(ModelMessages, GatherAndScatterByListsOfTheirOwn) {
  both([](ModelEnd& end, int rank) -> Result {
    const std::vector<Cut> to{{500'000, 50'000}, {0, 0}, {0, 33}, {300'000, 49'967}};
    // More room than is needed
    if (rank == 1) LACUNA_TRY(end.receive(std::vector<Cut>{to[0], to[1], to[2], {300'000, 200'000}}, 9));
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      fill(end, 200'000);
      LACUNA_TRY(end.post({.wr_id = 7}, std::vector<Cut>{{5, 1}, {6, 70'000}, {7, 0}, {70'006, 29'999}}));
      expect(LACUNA_TRY(end.next()), 7, Opcode::send);
    } else {
      expect(LACUNA_TRY(end.next()), 9, Opcode::recv, 100'000);
      expect_only(end, 5, to);
    }
    return {};
  });
}

// More messages than receives, most of them sent before the receiver is ready, of all sizes.
TEST_P(ModelMessages, MeetTheirReceivesInOrder) {
  both([](ModelEnd& end, int rank) -> Result {
    const auto size_of = [](std::uint64_t m) -> std::size_t { return m % 7 == 0 ? 0 : m % 11 == 0 ? 10'000 : m * 3; };
    std::uint64_t posted = 0;
    for (std::uint64_t done = 0; done < 100; ++done) {
      for (; posted < 100 && posted - done < 5; ++posted) {
        const std::size_t at = posted % 5 * 20'000;
        if (rank == 0) {
          std::memset(end.buffer.data() + at, static_cast<int>(posted & 0xff), size_of(posted));
          LACUNA_TRY(end.post({.wr_id = posted}, {at, size_of(posted)}));
        } else {
          LACUNA_TRY(end.receive({at, 15'000}, posted));
        }
      }
      expect(LACUNA_TRY(end.next()), done, rank == 0 ? Opcode::send : Opcode::recv, rank == 0 ? 0 : size_of(done));
      const std::byte* at = end.buffer.data() + done % 5 * 20'000;
      EXPECT_TRUE(std::all_of(at, at + size_of(done), [&](std::byte b) { return b == static_cast<std::byte>(done & 0xff); })) << done;
    }
    return {};
  });
}

TEST_P(ModelMessages, WritesGatherAndReadsScatter) {
  both([](ModelEnd& end, int rank) -> Result {
    const std::vector<Cut> cuts{{3, 700}, {0, 0}, {703, 5000}, {5703, 1}};
    if (rank == 0) {
      fill(end, 10'000);
      LACUNA_TRY(end.post({.wr_id = 1, .opcode = Opcode::write}, cuts, 100'001));
      expect(LACUNA_TRY(end.next()), 1, Opcode::write);
    }
    LACUNA_TRY(end.meet());
    if (rank == 1) {
      expect_only(end, 3, std::vector<Cut>{{100'001, 5701}});
      std::memset(end.buffer.data(), 0, end.buffer.size());
      const std::vector<Cut> to{{900'000, 1}, {50, 3000}, {10'000, 0}, {7'000, 200}};
      LACUNA_TRY(end.post({.wr_id = 2, .opcode = Opcode::read}, to, 17));
      expect(LACUNA_TRY(end.next()), 2, Opcode::read);
      expect_only(end, 17, to);
      LACUNA_TRY(end.post({.wr_id = 3, .opcode = Opcode::read}, std::span<const Cut>()));
      expect(LACUNA_TRY(end.next()), 3, Opcode::read);
    }
    return {};
  });
}

// A write with immediate lands like a write and takes one receive, whose list it leaves alone, in order with the sends
// around it. A rank that is told finds the data: also if the word that tells it is empty, and overtakes nothing.
TEST_P(ModelMessages, ImmediatesComeBehindTheirData) {
  both([](ModelEnd& end, int rank) -> Result {
    constexpr std::size_t size = 20'000;
    for (std::uint64_t id = 1; id <= 3 && rank == 1; ++id) LACUNA_TRY(end.receive({0, 100}, id));
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      fill(end, size);
      LACUNA_TRY(
          end.post({.wr_id = 1, .opcode = Opcode::write_imm, .imm_data = 0xdeadbeef}, std::vector<Cut>{{0, 70}, {70, size - 70}}, 500'000));
      LACUNA_TRY(end.post({.wr_id = 2}, {0, 10}));
      LACUNA_TRY(end.post({.wr_id = 3, .opcode = Opcode::write}, {0, size}, 700'000));
      LACUNA_TRY(end.post({.wr_id = 4, .opcode = Opcode::write_imm, .imm_data = 5}, std::span<const Cut>()));
      for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(LACUNA_TRY(end.next()).wr_id, id);
    } else {
      const nic::Completion first = LACUNA_TRY(end.next());
      expect(first, 1, Opcode::recv_imm, size);
      EXPECT_EQ(first.imm_data, 0xdeadbeef);
      EXPECT_EQ(end.buffer.data()[500'000 + size - 1], pattern(size - 1));
      expect(LACUNA_TRY(end.next()), 2, Opcode::recv, 10);
      const nic::Completion last = LACUNA_TRY(end.next());
      expect(last, 3, Opcode::recv_imm);
      EXPECT_EQ(last.imm_data, 5U);
      std::vector<std::byte> expected(end.buffer.size(), std::byte{0});
      for (const Cut& cut : {Cut{0, 10}, {500'000, size}, {700'000, size}}) {
        for (std::size_t i = 0; i < cut.length; ++i) expected[cut.offset + i] = pattern(i);
      }
      EXPECT_TRUE(std::ranges::equal(end.buffer.bytes(), expected));
    }
    return {};
  });
}

// A second write raises a flag: who sees it finds the data of the first.
TEST_P(ModelMessages, FlagsComeBehindTheirData) {
  both([](ModelEnd& end, int rank) -> Result {
    constexpr std::size_t flag_at = 1 << 19;
    if (rank == 0) {
      fill(end, 10'000);
      const std::uint64_t one = 1;
      std::memcpy(end.buffer.data() + flag_at, &one, sizeof one);
      LACUNA_TRY(end.post({.opcode = Opcode::write, .signaled = false}, {0, 10'000}));
      LACUNA_TRY(end.post({.wr_id = 8, .opcode = Opcode::write, .inline_data = true}, {flag_at, 8}, flag_at));
      EXPECT_EQ(LACUNA_TRY(end.next()).wr_id, 8U);  // the first one is silent
    } else {
      const auto* flag = reinterpret_cast<const std::uint64_t*>(end.buffer.data() + flag_at);
      while (end.context->load_flag(flag) == 0) {
        if (end.context->poll(*end.queue, {}) == 0) LACUNA_TRY(end.context->wait(end.context->now() + kSecond));
      }
      std::memset(end.buffer.data() + flag_at, 0, 8);
      expect_only(end, 0, std::vector<Cut>{{0, 10'000}});
    }
    return {};
  });
}

// Inline bytes are copied when posted, whatever becomes of the memory, and need no key.
TEST_P(ModelMessages, InlineDataIsTakenAtOnce) {
  both([](ModelEnd& end, int rank) -> Result {
    if (rank == 1) {
      LACUNA_TRY(end.receive({0, 64}));
      expect(LACUNA_TRY(end.next()), 0, Opcode::recv, 22);
      LACUNA_TRY(end.meet());
      EXPECT_EQ(std::memcmp(end.buffer.data(), "scatterednot registere", 23), 0);
      EXPECT_EQ(std::memcmp(end.buffer.data() + 100, "scatterednot registere", 23), 0);
      return {};
    }
    std::array<char, 26> words{"scattered, not registered"};
    const auto at = reinterpret_cast<std::uint64_t>(words.data());
    const nic::Sge list[] = {{at, 9, 0}, {at + 11, 13, 0}};
    LACUNA_TRY(end.qp->post_send({.wr_id = 1, .sg_list = list, .inline_data = true}));
    LACUNA_TRY(end.qp->post_send({.wr_id = 2,
                                  .opcode = Opcode::write,
                                  .sg_list = list,
                                  .remote_addr = end.peer.addr + 100,
                                  .rkey = end.peer.key,
                                  .inline_data = true}));
    words.fill('x');
    expect(LACUNA_TRY(end.next()), 1, Opcode::send);
    expect(LACUNA_TRY(end.next()), 2, Opcode::write);
    EXPECT_EQ(end.qp->post_send({.opcode = Opcode::read, .sg_list = {list, 1}, .inline_data = true}).error().code,
              base::Code::invalid_argument);
    return end.meet();
  });
}

// A chain runs in order, whatever is signaled, and is posted whole or not at all.
TEST_P(ModelMessages, ChainsAreWhole) {
  both([](ModelEnd& end, int rank) -> Result {
    if (rank == 0) {
      fill(end, 65'000);
      std::vector<nic::Sge> list;
      for (std::size_t k = 0; k < 65; ++k) list.push_back(end.sge(k * 100, 100));
      std::vector<nic::SendRequest> chain;
      for (std::size_t k = 0; k < 65; ++k) {
        chain.push_back({.wr_id = k,
                         .opcode = Opcode::write,
                         .sg_list = {&list[k], 1},
                         .remote_addr = end.peer.addr + k * 150,
                         .rkey = end.peer.key,
                         .signaled = k == 59});
      }
      EXPECT_EQ(end.qp->post_chain(chain).error().code, base::Code::limit);  // the queue holds 64
      chain.resize(60);
      LACUNA_TRY(end.qp->post_chain(chain));
      expect(LACUNA_TRY(end.next()), 59, Opcode::write);
    }
    LACUNA_TRY(end.meet());
    if (rank == 1) {
      std::vector<Cut> cuts;
      for (std::size_t k = 0; k < 60; ++k) cuts.push_back({k * 150, 100});
      expect_only(end, 0, cuts);
    }
    return {};
  });
}

// A slow read, then writes that are done before it: they complete behind it.
TEST_P(ModelMessages, CompleteInTheOrderOfPosting) {
  both([](ModelEnd& end, int rank) -> Result {
    if (rank == 1) return {};
    for (std::uint64_t round = 0; round < 5; ++round) {
      for (std::uint64_t id = 0; id < 4; ++id)
        LACUNA_TRY(end.post({.wr_id = id, .opcode = id % 2 == 0 ? Opcode::read : Opcode::write}, {0, id % 2 == 0 ? 30'000U : 8U}));
      for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(LACUNA_TRY(end.next()).wr_id, id);
    }
    return {};
  });
}

// A read finds what the writes before it wrote; also if these still wait for a receive.
TEST_P(ModelMessages, ReadsComeBehindTheWritesBeforeThem) {
  both([](ModelEnd& end, int rank) -> Result {
    constexpr std::size_t size = 20'000;
    if (rank == 0) {
      fill(end, size);
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, size}));
      LACUNA_TRY(end.post({.opcode = Opcode::read}, {300'000, 8}, size - 8));
      LACUNA_TRY(end.post({.opcode = Opcode::write_imm}, {0, size}, 100'000));  // its receive comes late
      LACUNA_TRY(end.post({.wr_id = 4, .opcode = Opcode::read}, {400'000, 8}, 100'000 + size - 8));
      for (int i = 0; i < 3; ++i) LACUNA_TRY(end.next());
      expect(LACUNA_TRY(end.next()), 4, Opcode::read);
      EXPECT_EQ(std::memcmp(end.buffer.data() + 300'000, end.buffer.data() + size - 8, 8), 0);
      EXPECT_EQ(std::memcmp(end.buffer.data() + 400'000, end.buffer.data() + size - 8, 8), 0);
    } else {
      while (end.context->now() < 50'000'000) end.context->poll(*end.queue, {}), static_cast<void>(end.context->wait(50'000'000));
      LACUNA_TRY(end.receive({0, 0}));
      LACUNA_TRY(end.next());
    }
    return {};
  });
}

// What a read brings may be sent on behind a fence, and not without one.
TEST_P(ModelMessages, FencesWaitForReads) {
  both([](ModelEnd& end, int rank) -> Result {
    constexpr std::size_t size = 20'000;
    if (rank == 1) fill(end, size);
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      LACUNA_TRY(end.post({.opcode = Opcode::read}, {0, size}));
      LACUNA_TRY(end.post({.opcode = Opcode::read}, {size, size}));
      LACUNA_TRY(end.post({.opcode = Opcode::write, .fence = true}, {0, 2 * size}, 100'000));
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {size, size}, 200'000));  // behind a fenced one everything is
      for (int i = 0; i < 4; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
    }
    LACUNA_TRY(end.meet());
    for (const std::size_t at : {std::size_t{100'000}, 100'000 + size, std::size_t{200'000}})
      EXPECT_TRUE(rank == 0 || std::memcmp(end.buffer.data() + at, end.buffer.data(), size) == 0) << at;
    return {};
  });
}
TEST(ModelFence, IsNeeded) {
  run(free_world({{"nic.dma_read_ns", 1000}, {"nic.flight_ns", 1000}}), [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    if (rank == 1) fill(end, 8);
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      LACUNA_TRY(end.post({.opcode = Opcode::read}, {0, 8}));
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {0, 8}, 100));
      for (int i = 0; i < 2; ++i) LACUNA_TRY(end.next());
      // A bind waits by itself: it completes a whole read later.
      const nic::IndirectKey key = LACUNA_TRY(end.context->create_indirect_key(1));
      const nic::Sge piece = end.sge(0, 8);
      const nic::Binding binding{.key = key.lkey(), .list = {&piece, 1}};
      const std::int64_t began = end.context->now();
      LACUNA_TRY(end.post({.opcode = Opcode::read, .signaled = false}, {0, 8}));
      LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
      EXPECT_EQ(LACUNA_TRY(end.next()).opcode, Opcode::bind);
      EXPECT_EQ(end.context->now() - began, 3000);
    }
    LACUNA_TRY(end.meet());
    if (rank == 1) {
      EXPECT_EQ(end.buffer.data()[100], std::byte{0});
    }
    return {};
  });
}

// Indirect keys on either side of every request, from the middle on, bound again behind their use.
TEST_P(ModelMessages, GoThroughIndirectKeys) {
  both([](ModelEnd& end, int rank) -> Result {
    std::vector<Cut> stairs;
    for (std::size_t k = 0; k < 100; ++k) stairs.push_back({k * 500, k});  // the first one has no bytes
    constexpr std::uint32_t total = 99 * 100 / 2;
    const nic::IndirectKey key = LACUNA_TRY(end.context->create_indirect_key(100));
    const std::vector<nic::Sge> list = end.list(stairs);
    const nic::Binding binding{.key = key.lkey(), .list = list};
    LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    expect(LACUNA_TRY(end.next()), 0, Opcode::bind);
    const std::uint32_t peer = LACUNA_TRY(swap(*end.bootstrap, key.rkey()));
    const nic::Sge whole{0, total, key.lkey()};
    const nic::Sge parts[] = {{1777, 100, key.lkey()}, {1877, total - 1877, key.lkey()}};
    if (rank == 1) LACUNA_TRY(end.qp->post_recv({.sg_list = {&whole, 1}}));
    LACUNA_TRY(end.meet());
    if (rank == 0) {
      fill(end, 800'000);
      LACUNA_TRY(end.post({}, {0, total}));  // flat to stairs
      LACUNA_TRY(end.next());
      LACUNA_TRY(end.meet());
      LACUNA_TRY(end.meet());
      LACUNA_TRY(end.post({.opcode = Opcode::write, .remote_addr = 1000, .rkey = peer}, {1000, total - 1000}));
      LACUNA_TRY(end.post({.opcode = Opcode::write, .remote_addr = 0, .rkey = peer}, {0, 1000}));
      for (int i = 0; i < 2; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
    } else {
      LACUNA_TRY(end.next());
      expect_only(end, 0, stairs);
      std::memset(end.buffer.data(), 0, end.buffer.size());
      LACUNA_TRY(end.meet());
      LACUNA_TRY(end.meet());
    }
    LACUNA_TRY(end.meet());
    if (rank == 1) {
      expect_only(end, 0, stairs);
      const std::vector<nic::Sge> flat = end.list(std::vector<Cut>{{600'000, total}});
      LACUNA_TRY(end.qp->post_send({.opcode = Opcode::write, .sg_list = parts, .remote_addr = end.peer.addr, .rkey = end.peer.key}));
      const nic::Binding elsewhere{.key = key.lkey(), .list = flat};
      const nic::SendRequest chain[] = {
          {.opcode = Opcode::bind, .signaled = false, .binding = &elsewhere},
          {.opcode = Opcode::read, .sg_list = {&whole, 1}, .remote_addr = end.peer.addr, .rkey = end.peer.key}};
      LACUNA_TRY(end.qp->post_chain(chain));
      for (int i = 0; i < 2; ++i) EXPECT_EQ(LACUNA_TRY(end.next()).status, Status::success);
      for (std::size_t i = 0; i < total - 1777; ++i) EXPECT_EQ(end.buffer.data()[600'000 + i], pattern(1777 + i)) << i;
    }
    return {};
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
