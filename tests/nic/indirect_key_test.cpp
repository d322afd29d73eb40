// Indirect keys: what they stand for, on which side of which request they may be used, their limits, and what is left after they were bound
// again, invalidated or destroyed.
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

// A list as the source of a send, target of a receive, source and target of writes and reads, whole and from the middle.
std::string lists(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(static_cast<int>(steps(rig))));
  const std::uint32_t total = staircase_bytes(rig);
  const std::vector<nic::Sge> list = staircase(rig);
  const Binding binding{.key = key.lkey(), .list = list};
  LACUNA_END_EXPECT(LACUNA_END_TRY(bind(rig, binding)).opcode == Opcode::bind);
  struct Addresses {
    Address memory;
    std::uint32_t key;
  };
  const Addresses peer = LACUNA_END_TRY(swap(bootstrap, Addresses{{rig.region.addr(), rig.region.rkey()}, key.rkey()}));
  constexpr std::uint32_t middle = 777;
  const auto done = [&]() -> std::string {
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    return completion.status == Status::success ? "" : std::string(status_name(completion.status));
  };
  const nic::Sge whole{0, total, key.lkey()};
  const nic::Sge part[] = {{middle, 1000, key.lkey()}, {middle + 1000, total - middle - 1000, key.lkey()}};
  if (rank == 0) {
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
    const nic::Sge pieces[] = {{middle, 1, key.lkey()}, {middle + 1, 3000, key.lkey()}, {middle + 3001, total - middle - 3001, key.lkey()}};
    for (const nic::Sge& piece : pieces)
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&piece, 1}, .remote_addr = piece.addr, .rkey = peer.key}));
    const nic::Sge first{0, middle, key.lkey()};
    LACUNA_END_TRY(
        rig.qp->post_send({.opcode = Opcode::write_imm, .sg_list = {&first, 1}, .remote_addr = 0, .rkey = peer.key, .imm_data = 4}));
    for (int i = 0; i < 4; ++i) LACUNA_END_EXPECT(done().empty());
    LACUNA_END_TRY(rig.qp->post_recv({}));
    LACUNA_END_TRY(barrier(bootstrap));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).opcode == Opcode::recv);  // rank 1 has read
  } else {
    const nic::Sge flat = rig.sge(500'000, total);
    const nic::Sge flat_part = rig.sge(700'000, total - middle);
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&flat, 1}}));
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&flat_part, 1}}));
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&whole, 1}}));
    LACUNA_END_TRY(rig.qp->post_recv({}));
    for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(done().empty());
    LACUNA_END_EXPECT(stream_at(rig, 500'000, 0, total) && stream_at(rig, 700'000, middle, total - middle));
    const std::vector<std::byte> stairs = expected_stairs(rig);
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data(), stairs.data(), stairs.size()) == 0);
    std::memset(rig.buffer.data(), 0, 400'000);
    LACUNA_END_TRY(barrier(bootstrap));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).imm_data == 4);
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data(), stairs.data(), stairs.size()) == 0);
    LACUNA_END_TRY(barrier(bootstrap));
    // 5: read from the peer's stairs into our own, each at its middle
    std::memset(rig.buffer.data(), 0, 400'000);
    for (const nic::Sge& piece : {part[0], part[1], nic::Sge{0, middle, key.lkey()}})
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::read, .sg_list = {&piece, 1}, .remote_addr = piece.addr, .rkey = peer.key}));
    for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(done().empty());
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data(), stairs.data(), stairs.size()) == 0);
  }
  if (rank == 0) return {};
  LACUNA_END_TRY(rig.qp->post_send({}));
  LACUNA_END_EXPECT(done().empty());
  return {};
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
  LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = rig.region.rkey()}));  // a region's key is not its to take
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

// A writer hammers through a key that its owner takes away: by an invalidate request, by binding it elsewhere, by
// deregistering the region. Once that has happened, nothing of the old memory changes any more. The owner begins when
// the writer has, and polls until the writer has ended: by an error, or after some writes to where the key is then.
std::string race(nic::Path path, int way, int rank, nic::Bootstrap& bootstrap) {
  constexpr std::uint64_t kBegan = 100, kTaken = 101, kEnded = 102;  // messages
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const int pieces = std::min(64, rig.qp->limits().indirect.entries);
  const auto bytes = static_cast<std::size_t>(pieces) * 1000;
  nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(pieces));
  nic::Region region = LACUNA_END_TRY(rig.context->register_memory(rig.buffer.bytes(), {}));
  std::vector<nic::Sge> first;
  for (std::uint64_t k = 0; std::cmp_less(k, pieces); ++k) first.push_back({region.addr() + k * 2000, 1000, region.lkey()});
  LACUNA_END_TRY(bind(rig, {.key = key.lkey(), .list = first}));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{0, key.rkey()}));
  for (const std::uint64_t message : {kBegan, kEnded}) {
    if (rank == 1) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = message}));
  }
  if (rank == 0) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = kTaken}));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) {
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).wr_id == kBegan);
    if (way == 0) {
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = key.lkey()}));
    } else if (way == 1) {
      std::vector<nic::Sge> second = first;
      for (nic::Sge& sge : second) sge.addr += 500'000;
      const Binding elsewhere{.key = key.lkey(), .list = second};
      LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::bind, .binding = &elsewhere}));
    } else {
      region = nic::Region();
    }
    if (way != 2) {
      const nic::Completion done = LACUNA_END_TRY(rig.next());
      LACUNA_END_EXPECT(done.status == Status::success || done.status == Status::wr_flush_err);
    }
    const std::vector<std::byte> then(rig.buffer.data(), rig.buffer.data() + 200'000);
    if (way == 1) LACUNA_END_TRY(rig.qp->post_send({.wr_id = kTaken, .signaled = false}));
    while (LACUNA_END_TRY(rig.next()).wr_id != kEnded) continue;
    LACUNA_END_EXPECT(std::memcmp(then.data(), rig.buffer.data(), then.size()) == 0);
    LACUNA_END_TRY(barrier(bootstrap));
    return {};
  }
  const nic::Sge source = rig.sge(0, bytes);
  const std::int64_t deadline = rig.context->now() + kPatience;
  int later = 0;  // writes, since the key was bound elsewhere
  bool began = false, taken = false;
  for (int i = 1; rig.qp->fault() == nullptr && later < 20; i = i % 100 + 1) {
    if (rig.context->now() > deadline) return in_vain("an error of writes through a key that was taken away");
    std::memset(rig.buffer.data(), i, bytes);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .remote_addr = 0, .rkey = peer.key}));
    nic::Completion done = LACUNA_END_TRY(rig.next());
    if (done.wr_id == kTaken) {  // the owner's message; or, flushed, what a queue pair gives back before the write that failed
      taken = done.status == Status::success;
      done = LACUNA_END_TRY(rig.next());
    }
    LACUNA_END_EXPECT(done.status == Status::success || done.status == Status::rem_access_err);
    later += taken ? 1 : 0;
    if (std::exchange(began, true)) continue;
    LACUNA_END_EXPECT(done.status == Status::success);
    LACUNA_END_TRY(rig.qp->post_send({.signaled = false}));
  }
  if (rig.qp->fault() == nullptr) {
    LACUNA_END_EXPECT(way == 1);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = kEnded}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
constexpr const char* kWays[] = {"_Invalidated", "_BoundElsewhere", "_Deregistered"};

class TakenAway : public testing::TestWithParam<std::tuple<nic::Path, int>> {};
TEST_P(TakenAway, MemoryIsLeftAloneTwoProcesses) {
  LACUNA_NEEDS_PATH(std::get<0>(GetParam()));
  LACUNA_NEEDS_KEYS();
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return race(std::get<0>(GetParam()), std::get<1>(GetParam()), rank, b); }),
            "");
}
TEST_P(TakenAway, MemoryIsLeftAloneTwoThreads) {
  LACUNA_NEEDS_PATH(std::get<0>(GetParam()));
  LACUNA_NEEDS_KEYS();
  EXPECT_EQ(in_two_threads([](int rank, nic::Bootstrap& b) { return race(std::get<0>(GetParam()), std::get<1>(GetParam()), rank, b); }),
            "");
}
INSTANTIATE_TEST_SUITE_P(Nic, TakenAway, testing::Combine(testing::ValuesIn(tested_paths()), testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return std::string(nic::path_name(std::get<0>(info.param))) + kWays[std::get<1>(info.param)];
                         });

LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, lists)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, strides)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, rebinding_in_order)
LACUNA_ON_EVERY_PATH_BY_KEYS(IndirectKeys, misuse_at_home)
INSTANTIATE_TEST_SUITE_P(Nic, IndirectKeys, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
