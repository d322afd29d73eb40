// Errors of messages that are more than one slot or one batch takes, and of a request in the middle of a chain: each
// has its own status, and what came before it is done.
#include <sys/mman.h>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;

class Batches : public EveryPath {};
constexpr std::size_t kBytes = 20 << 20;

// Larger than all slots (256 KiB) and than a batch (8 MiB).
std::string large_refusals(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  for (const std::uint32_t bytes : {300'000U, 1'000'000U, 9'000'000U}) {
    for (const Opcode opcode : {Opcode::write, Opcode::send, Opcode::read}) {
      Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
      if (bytes > rig.qp->limits().max_message_bytes) continue;  // Soft-RoCE: 8 MiB
      const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
      const nic::Sge sge = rig.sge(0, rank == 0 ? bytes : bytes - 1);
      if (rank == 0) {
        LACUNA_END_TRY(rig.qp->post_send({.opcode = opcode, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key + 1}));
        const Status status = LACUNA_END_TRY(rig.next()).status;
        const Status wanted = opcode == Opcode::send ? Status::rem_inv_req_err : Status::rem_access_err;
        if (!means(wanted, status)) return std::to_string(bytes) + " bytes: " + std::string(status_name(status));
      } else {
        if (opcode == Opcode::send) LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
        LACUNA_END_TRY(rig.fault());
        if (opcode == Opcode::send) LACUNA_END_EXPECT(means(Status::loc_len_err, LACUNA_END_TRY(rig.next()).status));
      }
      LACUNA_END_TRY(barrier(bootstrap));
    }
  }
  return {};
}

// Of five writes the fourth is bad: by its key, or because its memory cannot be reached by this path.
std::string fourth_of_five(nic::Path path, bool unreachable, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
  constexpr std::size_t page = 4096;
  auto* ordinary = static_cast<std::byte*>(mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const nic::Region region = LACUNA_END_TRY(rig.context->register_memory({ordinary, page}, {}));
  if (rank == 1) take_away(ordinary, page);
  struct Both {
    Address good, bad;
  };
  const Both peer = LACUNA_END_TRY(swap(bootstrap, Both{{rig.region.addr(), rig.region.rkey()}, {region.addr(), region.rkey()}}));
  if (rank == 0) {
    std::memset(rig.buffer.data(), 7, 1000);
    const nic::Sge sge = rig.sge(0, 100);
    std::vector<nic::SendRequest> chain;
    for (std::uint64_t i = 0; i < 5; ++i) {
      chain.push_back(
          {.wr_id = i, .opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.good.addr + i * 1000, .rkey = peer.good.key});
    }
    chain[3].remote_addr = unreachable ? peer.bad.addr : peer.good.addr;
    chain[3].rkey = unreachable ? peer.bad.key : peer.good.key + 1;
    LACUNA_END_TRY(rig.qp->post_chain(chain));
    for (std::uint64_t i = 0; i < 5; ++i) {
      const nic::Completion done = LACUNA_END_TRY(rig.next());
      const Status bad = unreachable && path == nic::Path::kernel ? Status::rem_op_err : Status::rem_access_err;
      const Status wanted = i < 3 ? Status::success : i == 3 ? bad : Status::wr_flush_err;
      if (done.wr_id != i || done.status != wanted) return "request " + std::to_string(i) + ": " + std::string(status_name(done.status));
    }
  } else {
    LACUNA_END_TRY(rig.fault());
    for (std::size_t i = 0; i < 5; ++i) LACUNA_END_EXPECT(rig.buffer.data()[i * 1000] == static_cast<std::byte>(i < 3 ? 7 : 0));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  munmap(ordinary, page);
  return {};
}
std::string bad_key(nic::Path path, int rank, nic::Bootstrap& bootstrap) { return fourth_of_five(path, false, rank, bootstrap); }
// Over slots the target itself writes, and would fault as its program would
class UnreachableMemory : public EveryPath {};
TEST_P(UnreachableMemory, IsTheErrorOfItsRequestTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return fourth_of_five(GetParam(), true, rank, b); }), "");
}

// Our own memory that is gone is our own error.
std::string own_memory_gone(int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::kernel, 8192));
  constexpr std::size_t page = 4096;
  auto* gone = static_cast<std::byte*>(mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const nic::Region region = LACUNA_END_TRY(rig.context->register_memory({gone, page}, {}));
  take_away(gone, page);
  const nic::Sge sge = rank == 0 ? nic::Sge{region.addr(), 100, region.lkey()} : rig.sge(0, 100);
  if (rank == 0) {
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&sge, 1}}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::loc_prot_err);
  } else {
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::wr_flush_err);  // this end did nothing wrong
  }
  LACUNA_END_TRY(barrier(bootstrap));
  munmap(gone, page);
  return {};
}
TEST(KernelPath, KnowsWhoseMemoryIsGoneTwoProcesses) {
  LACUNA_NEEDS_PATH(nic::Path::kernel);
  EXPECT_EQ(in_two_processes(own_memory_gone), "");
}

LACUNA_ON_EVERY_PATH(Batches, large_refusals)
LACUNA_ON_EVERY_PATH(Batches, bad_key)
INSTANTIATE_TEST_SUITE_P(Nic, UnreachableMemory, testing::Values(nic::Path::mapped, nic::Path::kernel), path_test_name);
INSTANTIATE_TEST_SUITE_P(Nic, Batches, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
