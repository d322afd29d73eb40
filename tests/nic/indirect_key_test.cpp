// Indirect keys: what they stand for, on which side of which request they may be used, their limits, and what is left
// after they were bound again, invalidated or destroyed.
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Binding;
using nic::Opcode;
using nic::Status;

class IndirectKeys : public EveryPath {};

std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 37 + (i >> 7) + 3); }
constexpr std::size_t kBytes = 1 << 20;

base::Result<nic::Completion> bind(Rig& rig, const Binding& binding) {
  LACUNA_TRY(rig.qp->post_send({.wr_id = 50, .opcode = Opcode::bind, .binding = &binding}));
  return rig.next();
}

// 200 pieces of growing size, or as many as a key takes: piece k has (k + 1) * kStep bytes at k * 2000.
constexpr std::size_t kStep = 4;
std::size_t steps(const Rig& rig) { return static_cast<std::size_t>(std::min(200, rig.qp->limits().indirect.entries)); }
std::vector<nic::Sge> staircase(const Rig& rig) {
  std::vector<nic::Sge> list;
  for (std::size_t k = 0; k < steps(rig); ++k) list.push_back(rig.sge(k * 2000, (k + 1) * kStep));
  return list;
}
std::uint32_t staircase_bytes(const Rig& rig) { return static_cast<std::uint32_t>(kStep * steps(rig) * (steps(rig) + 1) / 2); }
std::vector<std::byte> expected_stairs(const Rig& rig) {
  std::vector<std::byte> bytes(400'000, std::byte{0});
  std::size_t at = 0;
  for (std::size_t k = 0; k < steps(rig); ++k) {
    for (std::size_t i = 0; i < (k + 1) * kStep; ++i) bytes[k * 2000 + i] = pattern(at++);
  }
  return bytes;
}
void fill_stairs(Rig& rig) {
  const std::vector<std::byte> bytes = expected_stairs(rig);
  std::memcpy(rig.buffer.data(), bytes.data(), bytes.size());
}
bool stream_at(const Rig& rig, std::size_t at, std::size_t from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (rig.buffer.data()[at + i] != pattern(from + i)) return false;
  }
  return rig.buffer.data()[at + bytes] == std::byte{0};
}

// A list as the source of a send, target of a receive, source and target of writes and reads, whole and from the
// middle. Rank 0 sends and writes, rank 1 receives and reads.
struct Lists {
  static constexpr std::uint32_t kMiddle = 777;

  Rig& rig;
  nic::Bootstrap& bootstrap;
  std::uint32_t key;
  std::uint32_t peer_key;
  std::uint32_t total = staircase_bytes(rig);
  nic::Sge whole{0, total, key};
  nic::Sge part[2] = {{kMiddle, 1000, key}, {kMiddle + 1000, total - kMiddle - 1000, key}};

  [[nodiscard]] std::string done() const {
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    return completion.status == Status::success ? "" : std::string(status_name(completion.status));
  }
  [[nodiscard]] bool stairs() const {
    const std::vector<std::byte> expected = expected_stairs(rig);
    return std::memcmp(rig.buffer.data(), expected.data(), expected.size()) == 0;
  }
  [[nodiscard]] std::string send() const;
  [[nodiscard]] std::string receive() const;
};

std::string Lists::send() const {
  fill_stairs(rig);
  // Receives first, so that rank 1 may clear its memory between two steps.
  LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&whole, 1}}));  // 1: stairs to flat
  LACUNA_END_EXPECT(done().empty());
  LACUNA_END_TRY(rig.qp->post_send({.sg_list = part}));  // 2: a part of them, as two entries
  LACUNA_END_EXPECT(done().empty());
  LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&whole, 1}}));  // 3: stairs to stairs
  LACUNA_END_EXPECT(done().empty());
  LACUNA_END_TRY(barrier(bootstrap));
  // 4: written through the peer's key, from its middle on, as three writes
  const nic::Sge pieces[] = {{kMiddle, 1, key}, {kMiddle + 1, 3000, key}, {kMiddle + 3001, total - kMiddle - 3001, key}};
  for (const nic::Sge& piece : pieces)
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&piece, 1}, .remote_addr = piece.addr, .rkey = peer_key}));
  const nic::Sge first{0, kMiddle, key};
  LACUNA_END_TRY(
      rig.qp->post_send({.opcode = Opcode::write_imm, .sg_list = {&first, 1}, .remote_addr = 0, .rkey = peer_key, .imm_data = 4}));
  for (int i = 0; i < 4; ++i) LACUNA_END_EXPECT(done().empty());
  LACUNA_END_TRY(rig.qp->post_recv({}));
  LACUNA_END_TRY(barrier(bootstrap));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).opcode == Opcode::recv);  // rank 1 has read
  return {};
}

std::string Lists::receive() const {
  const nic::Sge flat = rig.sge(500'000, total);
  const nic::Sge flat_part = rig.sge(700'000, total - kMiddle);
  LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&flat, 1}}));
  LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&flat_part, 1}}));
  LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&whole, 1}}));
  LACUNA_END_TRY(rig.qp->post_recv({}));
  for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(done().empty());
  LACUNA_END_EXPECT(stream_at(rig, 500'000, 0, total) && stream_at(rig, 700'000, kMiddle, total - kMiddle));
  LACUNA_END_EXPECT(stairs());
  std::memset(rig.buffer.data(), 0, 400'000);
  LACUNA_END_TRY(barrier(bootstrap));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).imm_data == 4);
  LACUNA_END_EXPECT(stairs());
  LACUNA_END_TRY(barrier(bootstrap));
  // 5: read from the peer's stairs into our own, each at its middle
  std::memset(rig.buffer.data(), 0, 400'000);
  for (const nic::Sge& piece : {part[0], part[1], nic::Sge{0, kMiddle, key}})
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::read, .sg_list = {&piece, 1}, .remote_addr = piece.addr, .rkey = peer_key}));
  for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(done().empty());
  LACUNA_END_EXPECT(stairs());
  LACUNA_END_TRY(rig.qp->post_send({}));
  LACUNA_END_EXPECT(done().empty());
  return {};
}

std::string lists(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(static_cast<int>(steps(rig))));
  const std::vector<nic::Sge> list = staircase(rig);
  LACUNA_END_EXPECT(LACUNA_END_TRY(bind(rig, {.key = key.lkey(), .list = list})).opcode == Opcode::bind);
  const Lists sides{rig, bootstrap, key.lkey(), LACUNA_END_TRY(swap(bootstrap, key.rkey()))};
  return rank == 0 ? sides.send() : sides.receive();
}

// Two interleaved fields of a strided binding, read and written by the peer in parts that begin and end anywhere.
std::string strides(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(2));
  constexpr std::uint32_t rounds = 1000;
  constexpr std::uint32_t total = rounds * 19;
  const nic::Strided fields[] = {{rig.region.addr() + 10, 7, 40, rig.region.lkey()},
                                 {rig.region.addr() + 500'000, 12, 33, rig.region.lkey()}};
  const Binding binding{.key = key.lkey(), .repeat = rounds, .strided = fields};
  LACUNA_END_EXPECT(LACUNA_END_TRY(bind(rig, binding)).status == Status::success);
  const std::uint32_t peer = LACUNA_END_TRY(swap(bootstrap, key.rkey()));
  if (rank == 1) LACUNA_END_TRY(rig.qp->post_recv({}));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {
    for (std::size_t i = 0; i < total; ++i) rig.buffer.data()[700'000 + i] = pattern(i);
    std::uint32_t at = 0;
    for (std::uint32_t size = 1; at < total; size = size * 3 + 1) {
      const std::uint32_t part = std::min(size, total - at);
      const nic::Sge sge = rig.sge(700'000 + at, part);
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = at, .rkey = peer}));
      at += part;
      LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    }
    const nic::Sge back = rig.sge(800'000, total - 6);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::read, .sg_list = {&back, 1}, .remote_addr = 5, .rkey = peer}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    LACUNA_END_EXPECT(stream_at(rig, 800'000, 5, total - 6));
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write_imm, .rkey = peer}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  } else {
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).opcode == Opcode::recv_imm);
    std::vector<std::byte> expected(kBytes, std::byte{0});
    std::size_t at = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < 7; ++i) expected[10 + round * 40 + i] = pattern(at++);
      for (std::size_t i = 0; i < 12; ++i) expected[500'000 + round * 33 + i] = pattern(at++);
    }
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data(), expected.data(), kBytes) == 0);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// On one queue pair a request may follow its bind at once, and a bind the request before it.
std::string rebinding_in_order(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  if (rank == 1) {
    for (std::size_t k = 0; k < 20; ++k) {
      const nic::Sge sge = rig.sge(k * 3000, 2000);
      LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
    }
    for (std::size_t k = 0; k < 20; ++k) {
      LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
      for (std::size_t i = 0; i < 2000; ++i) LACUNA_END_EXPECT(rig.buffer.data()[k * 3000 + i] == std::byte(k * 2 + (i < 1000 ? 1 : 2)));
    }
    return {};
  }
  for (std::size_t k = 0; k < 40; ++k) std::memset(rig.buffer.data() + k * 5000, static_cast<int>(k + 1), 1000);
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(2));
  for (std::size_t k = 0; k < 20; ++k) {
    const nic::Sge pieces[] = {rig.sge(k * 10'000, 1000), rig.sge(k * 10'000 + 5000, 1000)};
    const Binding binding{.key = key.lkey(), .list = pieces};
    const nic::Sge stream{0, 2000, key.lkey()};
    const nic::SendRequest chain[] = {{.opcode = Opcode::bind, .signaled = false, .binding = &binding},
                                      {.wr_id = k, .sg_list = {&stream, 1}}};
    LACUNA_END_TRY(rig.qp->post_chain(chain));
  }
  for (std::size_t k = 0; k < 20; ++k) {
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.wr_id == k && done.status == Status::success);
  }
  return {};
}

bool refused(const base::Result<void>& result, base::Code code, std::string_view text) {
  return !result && result.error().code == code && result.error().message.find(text) != std::string::npos;
}

// The ways in which the use of an indirect key must fail.
enum class Spoil { never_bound, invalidated, destroyed, beyond, no_right, regions_right, region_gone, nested };
struct Bad {
  const char* name;
  Spoil spoil;
};
const Bad kBad[] = {{"NeverBound", Spoil::never_bound},
                    {"Invalidated", Spoil::invalidated},
                    {"Destroyed", Spoil::destroyed},
                    {"BeyondItsEnd", Spoil::beyond},
                    {"WithoutRight", Spoil::no_right},
                    {"RegionWithoutRight", Spoil::regions_right},
                    {"RegionDeregistered", Spoil::region_gone},
                    {"Nested", Spoil::nested}};

// Makes a key at the target, spoils it, and lets the other end write through it.
std::string misuse(Spoil spoil, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(4));
  nic::IndirectKey inner = LACUNA_END_TRY(rig.context->create_indirect_key(4));
  nic::Region region =
      LACUNA_END_TRY(rig.context->register_memory(rig.buffer.bytes(), {.remote_write = spoil != Spoil::regions_right || rank == 0}));
  const nic::Sge piece{region.addr(), 1000, region.lkey()};
  LACUNA_END_TRY(bind(rig, {.key = inner.lkey(), .list = {&piece, 1}}));
  const nic::Sge through{0, 1000, inner.lkey()};
  const nic::Sge* entry = spoil == Spoil::nested ? &through : &piece;
  const std::uint32_t rkey = key.rkey();
  if (spoil == Spoil::nested && tested_nic() == "fake") {  // mlx5's keys could, so it is refused before they do
    const Binding nested{.key = key.lkey(), .list = {&through, 1}};
    LACUNA_END_EXPECT(refused(rig.qp->post_send({.opcode = Opcode::bind, .binding = &nested}), base::Code::invalid_argument,
                              "an indirect key as an entry"));
    return {};
  }
  if (spoil != Spoil::never_bound)
    LACUNA_END_TRY(bind(rig, {.key = key.lkey(), .rights = {.remote_write = spoil != Spoil::no_right}, .list = {entry, 1}}));
  if (spoil == Spoil::invalidated) {
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = rkey}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).opcode == Opcode::invalidate);
  }
  if (spoil == Spoil::destroyed) key = nic::IndirectKey();
  if (spoil == Spoil::region_gone) region = nic::Region();
  const std::uint32_t peer = LACUNA_END_TRY(swap(bootstrap, rkey));
  if (rank == 0) {
    const nic::Sge source = rig.sge(0, 100);
    const std::uint64_t at = spoil == Spoil::beyond ? 901 : 0;
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .remote_addr = at, .rkey = peer}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    if (done.status != Status::rem_access_err) return std::string("completed with ") + std::string(status_name(done.status));
  } else {
    LACUNA_END_TRY(rig.fault());
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// The same at the end that uses its own key.
std::string misuse_at_home(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(4));
  const nic::Sge piece = rig.sge(0, 1000);
  LACUNA_END_TRY(bind(rig, {.key = key.lkey(), .list = {&piece, 1}}));
  LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = key.lkey()}));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  if (rank == 0) {
    const nic::Sge stream{0, 1000, key.lkey()};
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&stream, 1}}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::loc_prot_err);
  } else {
    LACUNA_END_TRY(rig.fault());
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

class IndirectKeyMisuse : public testing::TestWithParam<std::tuple<Bad, nic::Path>> {};
TEST_P(IndirectKeyMisuse, IsAnAccessErrorTwoProcesses) {
  LACUNA_NEEDS_PATH(std::get<1>(GetParam()));
  LACUNA_NEEDS_KEYS();
  EXPECT_EQ(
      in_two_processes([](int rank, nic::Bootstrap& b) { return misuse(std::get<0>(GetParam()).spoil, std::get<1>(GetParam()), rank, b); }),
      "");
}
TEST_P(IndirectKeyMisuse, IsAnAccessErrorTwoThreads) {
  LACUNA_NEEDS_PATH(std::get<1>(GetParam()));
  LACUNA_NEEDS_KEYS();
  EXPECT_EQ(
      in_two_threads([](int rank, nic::Bootstrap& b) { return misuse(std::get<0>(GetParam()).spoil, std::get<1>(GetParam()), rank, b); }),
      "");
}
INSTANTIATE_TEST_SUITE_P(Nic, IndirectKeyMisuse, testing::Combine(testing::ValuesIn(kBad), testing::ValuesIn(tested_paths())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::string(nic::path_name(std::get<1>(info.param)));
                         });

// Limits are errors at the post, which name them; what is no key fails at its turn.
std::string limits(int /*rank*/, nic::Bootstrap& bootstrap) {
  const nic::OpenOptions options{.indirect = {.keys = 2, .entries = 5, .strided_entries = 2, .stride = 1000}};
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::mapped, kBytes, options));
  LACUNA_END_EXPECT(rig.qp->limits().indirect.entries == 5 && rig.qp->limits().indirect.stride == 1000);
  LACUNA_END_EXPECT(rig.context->create_indirect_key(6).error().message.find("takes 1 to 5") != std::string::npos);
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(3));
  {
    const nic::IndirectKey second = LACUNA_END_TRY(rig.context->create_indirect_key(5));
    LACUNA_END_EXPECT(rig.context->create_indirect_key(1).error().message.find("2 indirect keys exist") != std::string::npos);
  }
  LACUNA_END_EXPECT(rig.context->create_indirect_key(1).has_value());
  const auto post = [&](const Binding& binding) { return rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}); };
  const std::vector<nic::Sge> four(4, rig.sge(0, 8));
  LACUNA_END_EXPECT(
      refused(post({.key = key.lkey(), .list = four}), base::Code::limit, "4 entries; this key takes 3 in a list, 2 with strides"));
  const auto strided = [&](std::uint32_t bytes, std::uint32_t stride) {
    return nic::Strided{rig.region.addr(), bytes, stride, rig.region.lkey()};
  };
  const std::vector<nic::Strided> three(3, strided(8, 16));
  LACUNA_END_EXPECT(refused(post({.key = key.lkey(), .repeat = 2, .strided = three}), base::Code::limit, "3 entries"));
  const nic::Strided wide = strided(8, 1001);
  LACUNA_END_EXPECT(refused(post({.key = key.lkey(), .repeat = 2, .strided = {&wide, 1}}), base::Code::limit,
                            "a stride of 1001 bytes; an indirect key takes 1000"));
  const nic::Strided tight = strided(8, 7);
  LACUNA_END_EXPECT(
      refused(post({.key = key.lkey(), .repeat = 2, .strided = {&tight, 1}}), base::Code::invalid_argument, "do not overlap"));
  LACUNA_END_EXPECT(refused(post({.key = key.lkey(), .repeat = 2}), base::Code::invalid_argument, "either a list, or strided"));
  LACUNA_END_EXPECT(refused(rig.qp->post_send({.opcode = Opcode::bind}), base::Code::invalid_argument, "without a binding"));
  // Not the sixteen bits of mlx5 here, but those by default.
  LACUNA_END_EXPECT(open_tested().value()->limits().indirect.stride == 65535);
  LACUNA_END_EXPECT(open_tested({.indirect = {.keys = 0}}).value()->create_indirect_key(1).error().code == base::Code::unsupported);
  LACUNA_END_TRY(barrier(bootstrap));
  // A region's key is not its to take
  LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = rig.region.rkey()}));
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::mw_bind_err);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
TEST(IndirectKeyLimits, AreNamedTwoThreads) { EXPECT_EQ(in_two_threads(limits), ""); }

// A binding whose bytes do not fit 64 bits, on a device whose strides are long enough for one.
std::string immense(int /*rank*/, nic::Bootstrap& bootstrap) {
  constexpr std::uint32_t half = 1U << 31;
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::mapped, kBytes, {.indirect = {.stride = half}}));
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(4));
  const std::vector<nic::Strided> four(4, {rig.region.addr(), half, half, rig.region.lkey()});
  const Binding binding{.key = key.lkey(), .repeat = half, .strided = four};  // 2^64 bytes
  LACUNA_END_EXPECT(refused(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}), base::Code::overflow, "rounds of"));
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
TEST(IndirectKeyLimits, OverflowIsSeenTwoThreads) { EXPECT_EQ(in_two_threads(immense), ""); }

LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, lists)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, strides)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, rebinding_in_order)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, misuse_at_home)
INSTANTIATE_TEST_SUITE_P(Nic, IndirectKeys, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
