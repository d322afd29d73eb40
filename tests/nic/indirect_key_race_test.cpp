// An indirect key that its owner takes away while a peer writes through it.
#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Binding;
using nic::Opcode;
using nic::Status;

constexpr std::size_t kBytes = 1 << 20;
constexpr std::uint64_t kBegan = 100, kTaken = 101, kEnded = 102;  // messages

enum class Taken { invalidated, bound_elsewhere, deregistered };

// A writer hammers through a key that its owner takes away: by an invalidate request, by binding it elsewhere, by
// deregistering the region. Once that has happened, nothing of the old memory changes any more. The owner begins when
// the writer has, and polls until the writer has ended: by an error, or after some writes to where the key is then.
struct Race {
  Rig& rig;
  nic::Bootstrap& bootstrap;
  Taken way;

  [[nodiscard]] std::string own(std::uint32_t key, nic::Region& region, std::vector<nic::Sge> list) const;
  [[nodiscard]] std::string write(std::uint32_t peer_key, std::size_t bytes) const;
};

// `list`: what the key was bound to.
std::string Race::own(std::uint32_t key, nic::Region& region, std::vector<nic::Sge> list) const {
  LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).wr_id == kBegan);
  if (way == Taken::invalidated) {
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::invalidate, .rkey = key}));
  } else if (way == Taken::bound_elsewhere) {
    for (nic::Sge& sge : list) sge.addr += 500'000;
    const Binding elsewhere{.key = key, .list = list};
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::bind, .binding = &elsewhere}));
  } else {
    region = nic::Region();
  }
  if (way != Taken::deregistered) {
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.status == Status::success || done.status == Status::wr_flush_err);
  }
  const std::vector<std::byte> then(rig.buffer.data(), rig.buffer.data() + 200'000);
  if (way == Taken::bound_elsewhere) LACUNA_END_TRY(rig.qp->post_send({.wr_id = kTaken, .signaled = false}));
  while (LACUNA_END_TRY(rig.next()).wr_id != kEnded) continue;
  LACUNA_END_EXPECT(std::memcmp(then.data(), rig.buffer.data(), then.size()) == 0);
  return {};
}

std::string Race::write(std::uint32_t peer_key, std::size_t bytes) const {
  const nic::Sge source = rig.sge(0, bytes);
  const std::int64_t deadline = rig.context->now() + kPatience;
  int later = 0;  // writes, since the key was bound elsewhere
  bool began = false, taken = false;
  for (int i = 1; rig.qp->fault() == nullptr && later < 20; i = i % 100 + 1) {
    if (rig.context->now() > deadline) return in_vain("an error of writes through a key that was taken away");
    std::memset(rig.buffer.data(), i, bytes);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&source, 1}, .remote_addr = 0, .rkey = peer_key}));
    nic::Completion done = LACUNA_END_TRY(rig.next());
    // The owner's message; or, flushed, what a queue pair gives back before the write that failed
    if (done.wr_id == kTaken) {
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
    LACUNA_END_EXPECT(way == Taken::bound_elsewhere);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = kEnded}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  }
  return {};
}

std::string race(nic::Path path, Taken way, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const int pieces = std::min(64, rig.qp->limits().indirect.entries);
  const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(pieces));
  nic::Region region = LACUNA_END_TRY(rig.context->register_memory(rig.buffer.bytes(), {}));
  std::vector<nic::Sge> list;
  for (std::uint64_t k = 0; std::cmp_less(k, pieces); ++k) list.push_back({region.addr() + k * 2000, 1000, region.lkey()});
  const Binding binding{.key = key.lkey(), .list = list};
  LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
  LACUNA_END_TRY(rig.next());
  const auto peer_key = LACUNA_END_TRY(swap(bootstrap, key.rkey()));
  for (const std::uint64_t message : {kBegan, kEnded}) {
    if (rank == 1) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = message}));
  }
  if (rank == 0) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = kTaken}));
  LACUNA_END_TRY(barrier(bootstrap));
  const Race sides{rig, bootstrap, way};
  if (std::string wrong = rank == 1 ? sides.own(key.lkey(), region, list) : sides.write(peer_key, static_cast<std::size_t>(pieces) * 1000);
      !wrong.empty())
    return wrong;
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

constexpr const char* kWays[] = {"_Invalidated", "_BoundElsewhere", "_Deregistered"};

class TakenAway : public testing::TestWithParam<std::tuple<nic::Path, Taken>> {};
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
INSTANTIATE_TEST_SUITE_P(Nic, TakenAway,
                         testing::Combine(testing::ValuesIn(tested_paths()),
                                          testing::Values(Taken::invalidated, Taken::bound_elsewhere, Taken::deregistered)),
                         [](const auto& info) {
                           return std::string(nic::path_name(std::get<0>(info.param))) +
                                  kWays[static_cast<std::size_t>(std::get<1>(info.param))];
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
