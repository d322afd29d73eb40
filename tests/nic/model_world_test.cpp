// The simulated world: the same times whatever the machine, the memory and the run; whose turn it is; what profiles and
// ranks get wrong.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;
using Result = base::Result<void>;

// --- determinism -----------------------------------------------------------------------------------------------------

/// What every rank read off its clock, in its order.
using Log = std::vector<std::vector<std::int64_t>>;

// Everybody talks to everybody, pair by pair, both directions at once, with sizes, lists and keys of their own.
// `shift`: where in its memory.
Log talk(int ranks, bool moves_bytes, std::size_t shift) {
  Log log(static_cast<std::size_t>(ranks));
  run({.profile = kProfile, .ranks = ranks, .moves_bytes = moves_bytes}, [&](int rank, nic::World& world) -> Result {
    nic::Context& context = world.context(rank);
    const nic::Buffer ballast = LACUNA_TRY(context.allocate(shift * 4096 + 1));
    const nic::Buffer memory = LACUNA_TRY(context.allocate(300'000 + shift));
    auto& times = log[static_cast<std::size_t>(rank)];
    for (int step = 1; step < ranks; ++step) {
      ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank, rank ^ step, {.bytes = 300'000}));
      end.region = LACUNA_TRY(context.register_memory(memory.bytes().subspan(shift), {}));
      end.peer = LACUNA_TRY(swap(*end.bootstrap, Address{end.region.addr(), end.region.rkey()}));
      const nic::IndirectKey key = LACUNA_TRY(context.create_indirect_key(20));
      std::vector<nic::Sge> list;
      for (std::size_t k = 0; k < 20; ++k) list.push_back(end.sge(k * 5000, 300 + k));
      const nic::Binding binding{.key = key.lkey(), .list = list};
      LACUNA_TRY(end.receive({200'000, 100'000}));
      LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
      LACUNA_TRY(end.post({.opcode = Opcode::write}, {static_cast<std::size_t>(rank) * 100, 10'000}));
      const nic::Sge stream{17, 5000, key.lkey()};
      LACUNA_TRY(end.qp->post_send({.sg_list = {&stream, 1}}));
      LACUNA_TRY(end.post({.opcode = Opcode::read}, std::vector<Cut>{{0, 3000}, {9000, 20'000}}));
      for (int i = 0; i < 5; ++i) {
        const nic::Completion done = LACUNA_TRY(end.next());
        if (done.status != Status::success) return base::fail(base::Code::transfer, std::string(status_name(done.status)));
        times.push_back(context.now());
      }
      times.push_back(context.busy_ns());
      LACUNA_TRY(end.meet());
    }
    return {};
  });
  return log;
}

TEST(ModelWorld, IsTheSameEveryTime) {
  for (const int ranks : {2, 8, 16}) {
    const Log first = talk(ranks, true, 0);
    EXPECT_EQ(first.back().size(), 6U * static_cast<unsigned>(ranks - 1));
    EXPECT_GT(first.back().back(), 0);
    EXPECT_EQ(talk(ranks, true, 0), first) << ranks;
    EXPECT_EQ(talk(ranks, false, 0), first) << ranks << ", nothing moves";
    EXPECT_EQ(talk(ranks, true, 77), first) << ranks << ", memory elsewhere";
  }
}

// --- turns -----------------------------------------------------------------------------------------------------------

// Of processes that do nothing but compute, the one whose clock is behind goes on.
TEST(ModelTurns, GoToTheSmallestClock) {
  std::vector<std::pair<std::int64_t, int>> order;
  run(free_world({{"register.page_ns", 1}}, 3), [&](int rank, nic::World& world) -> Result {
    nic::Context& context = world.context(rank);
    const auto queue = LACUNA_TRY(context.create_completion_queue(1));
    const nic::Buffer memory = LACUNA_TRY(context.allocate(4096 * 1000));
    for (int i = 0; i < 20; ++i) {
      LACUNA_TRY(context.register_memory(memory.bytes().first(4096 * static_cast<std::size_t>(100 + rank * 37 + i * rank)), {}));
      context.poll(*queue, {});
      order.emplace_back(context.now(), rank);
    }
    return {};
  });
  EXPECT_EQ(order.size(), 60U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

// A spin without a wait hands over as well.
TEST(ModelTurns, ChangeInAFruitlessPoll) {
  bool seen = false;
  run({.profile = kProfile}, [&](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    nic::Completion done;
    if (rank == 0) LACUNA_TRY(end.receive({0, 8}));
    if (rank == 1) LACUNA_TRY(end.post({}, {0, 8}));
    while (end.context->poll(*end.queue, {&done, 1}) == 0) {
    }
    seen = seen || rank == 0;
    return end.meet();
  });
  EXPECT_TRUE(seen);
}

// One process may be ahead of another by a flight, but no event is: what arrives at 1050 finds the receive that was
// posted at 1000, though the sender, which only polls, was beyond 1050 before the receiver was at 1000.
TEST(ModelTurns, LeaveEventsInOrder) {
  run(free_world({{"nic.flight_ns", 1050}, {"nic.not_ready_ns", 10'000}, {"cpu.poll_empty_ns", 10}, {"register.call_ns", 490}}),
      [&](int rank, nic::World& world) -> Result {
        ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
        LACUNA_TRY(end.meet());
        const std::int64_t began = end.context->now();
        nic::Completion done;
        if (rank == 0) {
          LACUNA_TRY(end.post({}, {0, 8}));
          while (end.context->poll(*end.queue, {&done, 1}) == 0) {
          }
        } else {
          EXPECT_FALSE(end.context->wait(began + 500));  // the sender's turn: it may run ahead as far as 1550
          LACUNA_TRY(end.context->register_memory(end.buffer.bytes(), {}));
          LACUNA_TRY(end.receive({0, 8}));
          EXPECT_EQ(LACUNA_TRY(end.next()).byte_len, 8U);
          EXPECT_EQ(end.context->now() - began, 1060);  // seen by the poll behind it
        }
        return end.meet();
      });
}

// The rank that comes first waits, and both go on at one time, up to the grain of a poll; what they say is passed on in
// order.
TEST(ModelBootstrap, MakesBothEndsWait) {
  std::array<std::int64_t, 2> at{};
  run(free_world({{"register.call_ns", 12'345}, {"cpu.poll_empty_ns", 10}}), [&](int rank, nic::World& world) -> Result {
    nic::Context& context = world.context(rank);
    std::byte byte{};
    if (rank == 1) LACUNA_TRY(context.register_memory({&byte, 1}, {}));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(LACUNA_TRY(swap(world.bootstrap(rank, 1 - rank), 10 * i + rank)), 10 * i + 1 - rank);
    at[static_cast<std::size_t>(rank)] = context.now();
    EXPECT_LE(context.busy_ns(), rank * 12'345);  // waiting is idle
    return {};
  });
  EXPECT_NEAR(static_cast<double>(at[1]), 12'345 + 15, 15);  // three times
  EXPECT_NEAR(static_cast<double>(at[0]), static_cast<double>(at[1]), 10);
}

TEST(ModelBootstrap, GivesUp) {
  const auto world = nic::simulate({.profile = kProfile}).value();
  const Result ended = world->run([&](int rank) -> Result {
    if (rank == 0) LACUNA_TRY(world->bootstrap(0, 1).exchange({}, 1'000'000));
    return {};
  });
  EXPECT_EQ(ended.error().code, base::Code::timeout);
  EXPECT_NE(ended.error().message.find("rank 0: rank 1 did not answer"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(world->context(0).now()), 1e6, 100);
}

TEST(ModelBootstrap, ConnectsOnlyToThisWorld) {
  run({.profile = kProfile}, [](int rank, nic::World& world) -> Result {
    nic::Context& context = world.context(rank);
    const auto queue = LACUNA_TRY(context.create_completion_queue(1));
    if (rank == 1) {
      LACUNA_TRY(world.bootstrap(1, 0).exchange({}, kSecond));
      return {};
    }
    const auto connected = context.connect(world.bootstrap(0, 1), *queue, {});
    EXPECT_FALSE(connected);
    EXPECT_EQ(connected.error().code, base::Code::malformed);
    return {};
  });
}

// --- errors ----------------------------------------------------------------------------------------------------------

// The rank that failed is named, not one that waited for it.
TEST(ModelErrors, NameTheRankThatFailedFirst) {
  const auto world = nic::simulate({.profile = kProfile, .ranks = 3}).value();
  const Result ended = world->run([&](int rank) -> Result {
    if (rank == 1) return base::fail(base::Code::io, "the cause");
    LACUNA_TRY(world->bootstrap(rank, 1).exchange({}, 1000));
    return {};
  });
  EXPECT_EQ(ended.error().code, base::Code::io);
  EXPECT_EQ(ended.error().message, "rank 1: the cause");
  EXPECT_TRUE(world->run([](int) -> Result { return {}; }));  // it can run again
}

TEST(ModelErrors, NameRanksThatAreTooManyOrNone) {
  for (const int ranks : {0, -1, 1 << 20}) EXPECT_EQ(nic::simulate({.profile = kProfile, .ranks = ranks}).error().code, base::Code::limit);
  EXPECT_EQ(nic::simulate({.profile = kProfile, .ranks = 1}).value()->ranks(), 1);
}

class ModelProfile : public testing::Test {
 protected:
  ModelProfile() {
    std::string name = (std::filesystem::temp_directory_path() / "lacuna-model-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::filesystem::copy_file(kProfile, folder_ / "whole.json", std::filesystem::copy_options::overwrite_existing);
  }
  ~ModelProfile() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / (name + ".json")) << text;
    return path(name);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / (name + ".json")).string(); }
  static void expect_error(const std::string& profile, const std::string& overrides, base::Code code,
                           const std::vector<std::string>& named) {
    const auto world = nic::simulate({.profile = profile, .overrides = overrides});
    ASSERT_FALSE(world) << profile;
    EXPECT_EQ(world.error().code, code);
    for (const std::string& text : named) EXPECT_NE(world.error().message.find(text), std::string::npos) << world.error().message;
  }
  std::filesystem::path folder_;
};

TEST_F(ModelProfile, ErrorsNameTheFile) {
  using base::Code;
  expect_error(path("none"), "", Code::io, {path("none")});
  expect_error("", "", Code::io, {"cannot read"});
  for (const char* text : {"", "no JSON", "[1, 2]", "{}", R"({"parameters": 3})", R"({"parameters": {"a": )"})
    expect_error(file("bad", text), "", Code::invalid_argument, {path("bad"), "is no profile"});
  for (const char* entry : {"3", "{}", R"({"value": "3"})", R"({"value": null})", "[]"})
    expect_error(file("bad", R"({"base": "whole", "parameters": {"nic.mtu": )" + std::string(entry) + "}}"), "", Code::invalid_argument,
                 {path("bad"), "nic.mtu", "\"value\""});
}

TEST_F(ModelProfile, ErrorsNameTheParameter) {
  using base::Code;
  const auto value = [](const std::string& name, const std::string& number) {
    return R"({"base": "whole", "parameters": {")" + name + R"(": {"value": )" + number + "}}}";
  };
  expect_error(file("bad", R"({"parameters": {}})"), "", Code::invalid_argument, {path("bad"), " is missing"});
  expect_error(file("bad", value("nic.colour", "1")), "", Code::invalid_argument, {path("bad"), "no parameter is named nic.colour"});
  for (const auto& [name, number] : {std::pair{"nic.mtu", "255"},
                                     {"nic.flight_ns", "-1"},
                                     {"nic.flight_ns", "1e10"},
                                     {"nic.wire_gb_s", "0"},
                                     {"limits.max_sge", "0"},
                                     {"indirect.cache_variant", "2"},
                                     {"register.page_bytes", "0"},
                                     {"indirect.capacity", "0"}})
    expect_error(file("bad", value(name, number)), "", Code::invalid_argument, {path("bad"), name, "it may be"});
  expect_error(kProfile, R"({"nic.colour": 1})", Code::invalid_argument, {"nic.colour"});
  expect_error(kProfile, R"({"nic.mtu": 1})", Code::invalid_argument, {"nic.mtu is 1"});
  expect_error(kProfile, R"({"nic.mtu": "1024"})", Code::invalid_argument, {"nic.mtu", "no number"});
  for (const char* overrides : {"[]", "{", "3", "null"}) expect_error(kProfile, overrides, Code::invalid_argument, {"overrides"});
}

// A file says what it has otherwise than its base, and so on; the override has the last word.
TEST_F(ModelProfile, HasABase) {
  file("middle", R"({"base": "whole", "parameters": {"limits.max_sge": {"value": 11}, "limits.max_cqe": {"value": 12}}})");
  const std::string top = file("top", R"({"base": "middle", "parameters": {"limits.max_sge": {"value": 13}}})");
  const nic::Limits limits = nic::simulate({.profile = top}).value()->context(0).limits();
  EXPECT_EQ(limits.max_sge, 13);
  EXPECT_EQ(limits.max_cqe, 12);
  EXPECT_EQ(nic::simulate({.profile = top, .overrides = R"({"limits.max_sge": 14})"}).value()->context(0).limits().max_sge, 14);
  const std::string loop = file("loop", R"({"base": "pool", "parameters": {}})");
  file("pool", R"({"base": "loop", "parameters": {}})");
  expect_error(loop, "", base::Code::invalid_argument, {"bases have no end"});
  expect_error(file("orphan", R"({"base": "none", "parameters": {}})"), "", base::Code::io, {path("none")});
  expect_error(file("bad", R"({"base": 3, "parameters": {}})"), "", base::Code::invalid_argument, {path("bad"), "base"});
}

TEST(ModelOpenOptions, OnlyLower) {
  const auto limits = [](const nic::OpenOptions& options) {
    return nic::simulate({.profile = kProfile, .limits = options}).value()->context(1).limits();
  };
  const nic::Limits own = limits({});
  EXPECT_TRUE(own.shared_clock);
  EXPECT_TRUE(own.path(nic::Path::wire)->available && own.path(nic::Path::wire)->passive_target && !own.path(nic::Path::wire)->shared_only);
  EXPECT_EQ(own.path(nic::Path::mapped), nullptr);
  const nic::Limits low = limits({.max_sge = 3,
                                  .max_inline = 0,
                                  .max_send_wr = 5,
                                  .max_recv_wr = 6,
                                  .max_message_bytes = 7000,
                                  .indirect = {.keys = 8, .entries = 9, .inline_entries = 2, .stride = 100}});
  EXPECT_EQ(low.max_sge, 3);
  EXPECT_EQ(low.max_sge_rd, 3);
  EXPECT_EQ(limits({.max_sge = 3, .max_sge_rd = 2}).max_sge_rd, 2);
  EXPECT_EQ(low.max_inline, 0);
  EXPECT_EQ(low.max_send_wr, 5);
  EXPECT_EQ(low.max_recv_wr, 6);
  EXPECT_EQ(low.max_message_bytes, 7000);
  EXPECT_EQ(low.indirect.keys, 8);
  EXPECT_EQ(low.indirect.entries, 9);
  EXPECT_EQ(low.indirect.inline_entries, 2);
  EXPECT_EQ(low.indirect.stride, 100);
  EXPECT_EQ(limits({.max_sge = 1 << 20}).max_sge, own.max_sge);
  EXPECT_EQ(limits({.indirect = {.keys = 0}}).indirect.entries, 0);
  nic::OpenOptions none{.indirect = {.keys = 0}};
  const auto world = nic::simulate({.profile = kProfile, .limits = none}).value();
  EXPECT_EQ(world->context(0).create_indirect_key(1).error().code, base::Code::unsupported);
}

TEST(ModelOpenOptions, ForbidThePath) {
  run({.profile = kProfile, .limits = {.forbidden_paths = {nic::Path::wire}}}, [](int rank, nic::World& world) -> Result {
    const auto end = ModelEnd::make(world, rank);
    EXPECT_FALSE(end);
    EXPECT_EQ(end.error().code, base::Code::unsupported);
    EXPECT_NE(end.error().message.find("forbidden by the caller"), std::string::npos);
    EXPECT_FALSE(world.context(rank).limits().path(nic::Path::wire)->available);
    return {};
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
