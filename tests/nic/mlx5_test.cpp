// Indirect keys of mlx5, on a fake of mlx5dv that keeps its documented rules. Not run on hardware.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "lacuna/nic/verbs/device.hpp"
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using mlx5::Call;
using nic::Binding;
using nic::Opcode;
using nic::Status;
using What = mlx5::Call::What;

constexpr std::size_t kBytes = 1 << 20;

bool refused(const base::Result<void>& result, base::Code code, std::string_view text) {
  return !result && result.error().code == code && result.error().message.find(text) != std::string::npos;
}

// Two ends of one thread: the second one's part is done by whoever is called last.
struct Ends {
  Rig first, second;
};
base::Result<Ends> connect(const nic::OpenOptions& options = {}) {
  Ends ends;
  std::string wrong;
  const auto end = [&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    Rig rig;
    rig.context = LACUNA_END_TRY(mlx5::open(options));
    rig.queue = LACUNA_END_TRY(rig.context->create_completion_queue(64));
    rig.qp = LACUNA_END_TRY(rig.context->connect(bootstrap, *rig.queue, {nic::Path::wire, 16, 16}));
    rig.buffer = LACUNA_END_TRY(rig.context->allocate(kBytes));
    rig.region = LACUNA_END_TRY(rig.context->register_memory(rig.buffer.bytes(), {}));
    (rank == 0 ? ends.first : ends.second) = std::move(rig);
    return {};
  };
  wrong = in_two_threads(end);
  if (!wrong.empty()) return base::fail(base::Code::transfer, wrong);
  return ends;
}

base::Result<Status> done(Rig& rig) { return LACUNA_TRY(rig.next()).status; }

std::vector<Call> calls_of(std::initializer_list<What> kinds) {
  std::vector<Call> chosen;
  for (const Call& call : mlx5::take_calls()) {
    if (std::ranges::find(kinds, call.what) != kinds.end()) chosen.push_back(call);
  }
  return chosen;
}

TEST(Mlx5, TakesWhatAWorkRequestHoldsInline) {
  const auto context = mlx5::open().value();
  const nic::IndirectLimits& keys = context->limits().indirect;
  EXPECT_EQ(keys.entries, 52);  // umr.md: of a work request of 1024 bytes
  EXPECT_EQ(keys.inline_entries, 52);
  EXPECT_EQ(keys.strided_entries, 51);
  EXPECT_EQ(keys.stride, 65535);
  EXPECT_TRUE(keys.note.contains("not run on hardware")) << keys.note;
  EXPECT_EQ(context->limits().max_sge_rd, 30);
  EXPECT_EQ(context->limits().max_sge, 32);  // what both queues take
  EXPECT_EQ(context->limits().max_send_wr, 2047);
}

TEST(Mlx5, ADeviceWithoutKeysSaysSoByName) {
  const auto context = mlx5::open({}, mlx5::kOtherDevice).value();
  EXPECT_EQ(context->limits().indirect.keys, 0);
  const auto key = context->create_indirect_key(4);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, base::Code::unsupported);
  EXPECT_EQ(key.error().message, "this device has no indirect keys (fake4_0: it is no mlx5 device)");
}

// Devices that are mlx5's and yet have no keys.
TEST(Mlx5, WhyThereAreNoKeysIsSaid) {
  const auto reason = [](const nic::verbs::Library& library) {
    auto device = nic::verbs::Device::open(library, mlx5::kDevice);
    if (!device) return device.error().text();
    EXPECT_EQ((*device)->limits().indirect.keys, 0);
    return (*device)->limits().indirect.note;
  };
  nic::verbs::Library library = mlx5::library();
  library.mlx5 = base::fail(base::Code::unsupported, "its keys need rdma-core's libmlx5.so.1");
  EXPECT_EQ(reason(library), "fake5_0: its keys need rdma-core's libmlx5.so.1");
  nic::verbs::Mlx5 functions = **mlx5::library().mlx5;
  library.mlx5 = &functions;
  functions.create_mkey = [](mlx5dv_mkey_init_attr*) -> mlx5dv_mkey* {
    errno = EOPNOTSUPP;
    return nullptr;
  };
  EXPECT_EQ(reason(library), "fake5_0: it makes none: Operation not supported");
  functions.open_device = [](ibv_device*, mlx5dv_context_attr*) -> ibv_context* {
    errno = EPERM;
    return nullptr;
  };
  EXPECT_EQ(reason(library), "fake5_0: its kernel has no DEVX: Operation not permitted");

  library = mlx5::library();
  setenv("LACUNA_VERBS_ODP", "1", 1);
  EXPECT_TRUE(reason(library).contains("fake5_0 has no on-demand paging"));
  library.on_demand = [](ibv_context*) {
    ibv_odp_caps caps{};
    caps.general_caps = IBV_ODP_SUPPORT;
    caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    return caps;
  };
  EXPECT_TRUE(reason(library).contains("nobody has tried indirect keys with on-demand paging"));
  unsetenv("LACUNA_VERBS_ODP");
}

TEST(Mlx5, ABindingAndWhatUsesItAreOneDoorbell) {
  Ends ends = connect().value();
  Rig& rig = ends.first;
  mlx5::take_calls();
  const nic::IndirectKey key = rig.context->create_indirect_key(6).value();
  const nic::Sge into = ends.second.sge(0, 4000);
  ASSERT_TRUE(ends.second.qp->post_recv({.sg_list = {&into, 1}}));
  const nic::Sge pieces[] = {rig.sge(0, 1000), rig.sge(5000, 2000), rig.sge(9000, 1000)};
  for (std::size_t i = 0; i < 10'000; ++i) rig.buffer.data()[i] = static_cast<std::byte>(i / 1000 + 1);
  const Binding binding{.key = key.lkey(), .list = pieces};
  const nic::Sge stream{0, 4000, key.lkey()};
  const nic::SendRequest chain[] = {{.opcode = Opcode::bind, .signaled = false, .binding = &binding}, {.sg_list = {&stream, 1}}};
  ASSERT_TRUE(rig.qp->post_chain(chain));
  EXPECT_EQ(done(rig).value(), Status::success);
  EXPECT_EQ(done(ends.second).value(), Status::success);
  const int expected[] = {1, 6, 7, 10};
  for (std::size_t i = 0; i < 4000; ++i) ASSERT_EQ(ends.second.buffer.data()[i], static_cast<std::byte>(expected[i / 1000])) << i;

  const std::vector<Call> calls = calls_of({What::create_mkey, What::mr_list, What::mr_interleaved, What::complete});
  ASSERT_EQ(calls.size(), 3);
  EXPECT_EQ(calls[0].entries, 8);  // six, the head of a stride, and whole groups of four
  EXPECT_EQ(calls[1].what, What::mr_list);
  EXPECT_EQ(calls[1].entries, 3);
  EXPECT_EQ(calls[2].entries, 2);  // requests
}

TEST(Mlx5, ALoopIsOneEntry) {
  Ends ends = connect().value();
  Rig& rig = ends.first;
  const nic::IndirectKey key = rig.context->create_indirect_key(1).value();
  mlx5::take_calls();
  const nic::Strided loop{rig.region.addr() + 8, 24, 65535, rig.region.lkey()};
  const Binding binding{.key = key.lkey(), .repeat = 10, .strided = {&loop, 1}};
  ASSERT_TRUE(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
  EXPECT_EQ(done(rig).value(), Status::success);
  const std::vector<Call> calls = calls_of({What::mr_list, What::mr_interleaved});
  ASSERT_EQ(calls.size(), 1);
  EXPECT_EQ(calls[0].what, What::mr_interleaved);
  EXPECT_EQ(calls[0].repeat, 10);
  const nic::Sge source = ends.second.sge(0, 240);
  for (std::size_t i = 0; i < 240; ++i) ends.second.buffer.data()[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(ends.second.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .rkey = key.rkey()}));
  EXPECT_EQ(done(ends.second).value(), Status::success);
  for (std::size_t i = 0; i < 240; ++i) ASSERT_EQ(rig.buffer.data()[8 + i / 24 * 65535 + i % 24], static_cast<std::byte>(i)) << i;
}

// The device would cut the number to 16 bits, or take it for another one, in silence.
TEST(Mlx5, WhatTheDeviceWouldMistakeIsRefused) {
  Ends ends = connect().value();
  Rig& rig = ends.first;
  const nic::IndirectKey key = rig.context->create_indirect_key(52).value();
  const auto post = [&](Binding binding) {
    binding.key = key.lkey();
    return rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding});
  };
  const auto strided = [&](std::uint32_t bytes, std::uint32_t stride) {
    return nic::Strided{rig.region.addr(), bytes, stride, rig.region.lkey()};
  };
  const nic::Strided wide = strided(8, 65536);
  EXPECT_TRUE(
      refused(post({.repeat = 2, .strided = {&wide, 1}}), base::Code::limit, "a stride of 65536 bytes; an indirect key takes 65535"));
  const std::vector<nic::Strided> many(52, strided(8, 16));
  EXPECT_TRUE(refused(post({.repeat = 2, .strided = many}), base::Code::limit, "52 entries"));
  const std::vector<nic::Sge> long_list(53, rig.sge(0, 8));
  EXPECT_TRUE(refused(post({.list = long_list}), base::Code::limit, "53 entries"));
  const nic::Sge nothing = rig.sge(0, 0);
  EXPECT_TRUE(refused(post({.list = {&nothing, 1}}), base::Code::invalid_argument, "0 bytes"));
  const nic::Sge huge{rig.region.addr(), 1U << 31, rig.region.lkey()};
  EXPECT_TRUE(refused(post({.list = {&huge, 1}}), base::Code::limit, "an indirect key takes 2147483647"));
  const nic::Sge itself{0, 8, key.lkey()};
  EXPECT_TRUE(refused(post({.list = {&itself, 1}}), base::Code::invalid_argument, "an indirect key as an entry of another"));
  EXPECT_TRUE(refused(post({}), base::Code::invalid_argument, "no entries"));
  const nic::Sge piece = rig.sge(0, 8);
  const Binding foreign{.key = rig.region.lkey(), .list = {&piece, 1}};
  EXPECT_TRUE(
      refused(rig.qp->post_send({.opcode = Opcode::bind, .binding = &foreign}), base::Code::invalid_argument, "no indirect key of this"));
  EXPECT_TRUE(rig.qp->fault() == nullptr);
}

// A key is good for its own queue at once, and for others once its bind request is complete.
TEST(Mlx5, OthersWaitForTheCompletionOfABinding) {
  const auto write_through_new_key = [](bool waits) {
    Ends ends = connect().value();
    Rig& rig = ends.second;
    const nic::IndirectKey key = rig.context->create_indirect_key(2).value();
    const nic::Sge pieces[] = {rig.sge(0, 8), rig.sge(100, 8)};
    const Binding binding{.key = key.lkey(), .list = pieces};
    EXPECT_TRUE(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    if (waits) {
      EXPECT_EQ(done(rig).value(), Status::success);
    }
    const nic::Sge source = ends.first.sge(0, 16);
    EXPECT_TRUE(ends.first.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .rkey = key.rkey()}));
    return done(ends.first).value();
  };
  // Who does not wait is refused where the other end is first, which is now one and now the other.
  std::set<Status> seen;
  for (int time = 0; time < 200 && seen.size() < 2; ++time) seen.insert(write_through_new_key(false));
  EXPECT_EQ(seen, (std::set{Status::success, Status::rem_access_err}));
  for (int time = 0; time < 10; ++time) EXPECT_EQ(write_through_new_key(true), Status::success);
}

// Bytes that a read fetches land where its key stood when it was posted, also if the key is bound anew behind it.
TEST(Mlx5, ABindingWaitsForReadsBeforeIt) {
  Ends ends = connect().value();
  Rig& rig = ends.first;
  const nic::IndirectKey key = rig.context->create_indirect_key(2).value();
  std::memset(ends.second.buffer.data(), 7, 2000);
  for (std::size_t round = 0; round < 20; ++round) {
    const std::size_t at = round * 4000;
    const nic::Sge here[] = {rig.sge(at, 1000), rig.sge(at + 2000, 1000)};
    const Binding binding{.key = key.lkey(), .list = here};
    const nic::Sge sink{0, 2000, key.lkey()};
    const nic::SendRequest chain[] = {{.opcode = Opcode::bind, .signaled = false, .binding = &binding},
                                      {.opcode = Opcode::read,
                                       .sg_list = {&sink, 1},
                                       .remote_addr = ends.second.region.addr(),
                                       .rkey = ends.second.region.rkey(),
                                       .signaled = round % 5 == 4}};
    ASSERT_TRUE(rig.qp->post_chain(chain));
    if (round % 5 == 4) {
      EXPECT_EQ(done(rig).value(), Status::success);
    }
  }
  for (std::size_t i = 0; i < 80'000; ++i)
    ASSERT_EQ(rig.buffer.data()[i], std::byte{i % 2000 < 1000 ? std::uint8_t{7} : std::uint8_t{0}}) << i;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
