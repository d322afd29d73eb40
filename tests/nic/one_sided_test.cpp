// Reads, writes with immediate, chains, inline data; and whether a target must be there for them.
#include <sys/mman.h>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;

class OneSided : public EveryPath {};

std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 29 + (i >> 8) * 3 + 1); }

// The other end polls until this flag of its own buffer is set, so that every path moves.
std::string serve(Rig& rig, std::size_t flag_at) {
  LACUNA_END_TRY(rig.flag(flag_at, 1));
  return {};
}
std::string release(Rig& rig, const Address& peer, std::size_t flag_at) {
  const std::uint64_t one = 1;
  std::memcpy(rig.buffer.data() + flag_at, &one, sizeof one);
  const nic::Sge sge = rig.sge(flag_at, sizeof one);
  LACUNA_END_TRY(rig.qp->post_send(
      {.wr_id = 999, .opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr + flag_at, .rkey = peer.key}));
  const nic::Completion done = LACUNA_END_TRY(rig.next());
  LACUNA_END_EXPECT(done.wr_id == 999 && done.status == Status::success);
  return {};
}

constexpr std::size_t kBytes = 1 << 20;
constexpr std::size_t kFlag = kBytes - 8;

// Reads scatter what they fetch, of all sizes, between writes that go the other way, completing in order.
std::string reads(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::byte* bytes = rig.buffer.data();
  if (rank == 1) {
    for (std::size_t i = 0; i < kBytes / 2; ++i) bytes[i] = pattern(i);
    LACUNA_END_TRY(barrier(bootstrap));
    if (std::string wrong = serve(rig, kFlag); !wrong.empty()) return wrong;
    for (std::size_t i = 0; i < kBytes / 2; ++i) LACUNA_END_EXPECT(bytes[i] == pattern(i));  // nobody wrote here
    for (std::size_t i = 0; i < 100; ++i) LACUNA_END_EXPECT(bytes[700'000 + i] == std::byte{77});
    return {};
  }
  LACUNA_END_TRY(barrier(bootstrap));
  std::memset(bytes + 900'000, 77, 100);
  for (const std::size_t size : {0UL, 1UL, 100UL, 40'000UL, 300'000UL}) {
    const nic::Sge list[] = {rig.sge(5, size / 3), rig.sge(0, 0), rig.sge(400'000, size - size / 3)};
    const nic::Sge mark = rig.sge(900'000, 100);
    LACUNA_END_TRY(
        rig.qp->post_send({.wr_id = 1, .opcode = Opcode::read, .sg_list = list, .remote_addr = peer.addr + 11, .rkey = peer.key}));
    LACUNA_END_TRY(rig.qp->post_send(
        {.wr_id = 2, .opcode = Opcode::write, .sg_list = {&mark, 1}, .remote_addr = peer.addr + 700'000, .rkey = peer.key}));
    LACUNA_END_TRY(
        rig.qp->post_send({.wr_id = 3, .opcode = Opcode::read, .sg_list = {&list[0], 1}, .remote_addr = peer.addr + 11, .rkey = peer.key}));
    for (std::uint64_t id = 1; id <= 3; ++id) {
      const nic::Completion done = LACUNA_END_TRY(rig.next());
      LACUNA_END_EXPECT(done.wr_id == id && done.status == Status::success && done.opcode == (id == 2 ? Opcode::write : Opcode::read));
    }
    for (std::size_t i = 0; i < size / 3; ++i) LACUNA_END_EXPECT(bytes[5 + i] == pattern(11 + i));
    for (std::size_t i = 0; i < size - size / 3; ++i) LACUNA_END_EXPECT(bytes[400'000 + i] == pattern(11 + size / 3 + i));
    LACUNA_END_EXPECT(bytes[4] == std::byte{0} && bytes[5 + size / 3] == std::byte{0});
  }
  return release(rig, peer, kFlag);
}

// Both ends read from one another while messages wait for receives that nobody has posted: replies pass them by.
std::string reads_pass_waiting_sends(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::memset(rig.buffer.data(), rank + 1, 500'000);
  LACUNA_END_TRY(barrier(bootstrap));
  const nic::Sge target = rig.sge(500'000, 100'000);
  LACUNA_END_TRY(
      rig.qp->post_send({.wr_id = 1, .opcode = Opcode::read, .sg_list = {&target, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
  const nic::Sge message = rig.sge(0, 300'000);
  LACUNA_END_TRY(rig.qp->post_send({.wr_id = 2, .sg_list = {&message, 1}}));
  const nic::Completion first = LACUNA_END_TRY(rig.next());
  LACUNA_END_EXPECT(first.wr_id == 1 && first.status == Status::success);
  for (std::size_t i = 0; i < 100'000; ++i) LACUNA_END_EXPECT(rig.buffer.data()[500'000 + i] == std::byte(2 - rank));
  const nic::Sge room = rig.sge(600'000, 300'000);
  LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 3, .sg_list = {&room, 1}}));
  std::uint64_t seen = 0;
  for (int i = 0; i < 2; ++i) {
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.status == Status::success);
    seen |= std::uint64_t{1} << done.wr_id;
  }
  LACUNA_END_EXPECT(seen == 0b1100);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// A write with immediate lands like a write and then takes one receive, whose list it leaves alone, in order with the
// sends around it.
std::string immediates(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::byte* bytes = rig.buffer.data();
  constexpr std::size_t size = 100'000;
  if (rank == 0) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(i);
    const nic::Sge list[] = {rig.sge(0, 70'000), rig.sge(70'000, 30'000)};
    const nic::Sge small = rig.sge(0, 10);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 1,
                                      .opcode = Opcode::write_imm,
                                      .sg_list = list,
                                      .remote_addr = peer.addr + 500'000,
                                      .rkey = peer.key,
                                      .imm_data = 0xdeadbeef}));
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 2, .sg_list = {&small, 1}}));
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 3, .opcode = Opcode::write_imm, .remote_addr = peer.addr, .rkey = peer.key, .imm_data = 5}));
    LACUNA_END_TRY(barrier(bootstrap));  // the receiver posts nothing before this: the write waits (receiver not ready)
    for (std::uint64_t id = 1; id <= 3; ++id) {
      const nic::Completion done = LACUNA_END_TRY(rig.next());
      LACUNA_END_EXPECT(done.wr_id == id && done.status == Status::success);
    }
  } else {
    LACUNA_END_TRY(barrier(bootstrap));
    std::memset(bytes, 9, 100);
    const nic::Sge list = rig.sge(0, 100);
    for (std::uint64_t id = 1; id <= 3; ++id) LACUNA_END_TRY(rig.qp->post_recv({.wr_id = id, .sg_list = {&list, 1}}));
    const nic::Completion first = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(first.wr_id == 1 && first.opcode == Opcode::recv_imm && first.status == Status::success);
    LACUNA_END_EXPECT(first.byte_len == size && first.imm_data == 0xdeadbeef);
    for (std::size_t i = 0; i < size; ++i) LACUNA_END_EXPECT(bytes[500'000 + i] == pattern(i));
    const nic::Completion second = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(second.wr_id == 2 && second.opcode == Opcode::recv && second.byte_len == 10);
    const nic::Completion third = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(third.wr_id == 3 && third.opcode == Opcode::recv_imm && third.byte_len == 0 && third.imm_data == 5);
    LACUNA_END_EXPECT(bytes[9] == pattern(9) && bytes[10] == std::byte{9});  // only the send used its list
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// A chain runs in order; it is posted whole or not at all.
std::string chains(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::byte* bytes = rig.buffer.data();
  if (rank == 1) {
    if (std::string wrong = serve(rig, kFlag); !wrong.empty()) return wrong;
    for (std::size_t k = 0; k < 60; ++k) {
      for (std::size_t i = 0; i < 1000; ++i) LACUNA_END_EXPECT(bytes[k * 1500 + i] == pattern(k * 1000 + i));
      LACUNA_END_EXPECT(bytes[k * 1500 + 1000] == std::byte{0});
    }
    return {};
  }
  for (std::size_t i = 0; i < 60'000; ++i) bytes[i] = pattern(i);
  std::vector<nic::Sge> list;
  for (std::size_t k = 0; k < 65; ++k) list.push_back(rig.sge(k * 1000, 1000));
  std::vector<nic::SendRequest> chain;
  for (std::size_t k = 0; k < 65; ++k) {
    chain.push_back({.wr_id = k,
                     .opcode = Opcode::write,
                     .sg_list = {&list[k], 1},
                     .remote_addr = peer.addr + k * 1500,
                     .rkey = peer.key,
                     .signaled = k == 59});
  }
  const base::Result<void> full = rig.qp->post_chain(chain);  // the queue holds 64
  LACUNA_END_EXPECT(!full && full.error().code == base::Code::limit);
  chain.resize(60);
  LACUNA_END_TRY(rig.qp->post_chain(chain));
  const nic::Completion done = LACUNA_END_TRY(rig.next());
  LACUNA_END_EXPECT(done.wr_id == 59 && done.status == Status::success);
  return release(rig, peer, kFlag);
}

// Unsignaled requests keep their places until a later completion was polled, as they do on hardware.
std::string silent_requests_fill_the_queue(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  if (rank == 1) return serve(rig, kFlag);
  const nic::Sge sge = rig.sge(0, 8);
  nic::SendRequest request{.opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key, .signaled = false};
  for (int i = 0; i < 63; ++i) LACUNA_END_TRY(rig.qp->post_send(request));
  request.signaled = true;
  LACUNA_END_TRY(rig.qp->post_send(request));
  const base::Result<void> full = rig.qp->post_send(request);
  LACUNA_END_EXPECT(!full && full.error().code == base::Code::limit);
  LACUNA_END_TRY(rig.next());
  for (int i = 0; i < 63; ++i) LACUNA_END_TRY(rig.qp->post_send(request));
  for (int i = 0; i < 63; ++i) LACUNA_END_TRY(rig.next());
  return release(rig, peer, kFlag);
}

// Inline bytes are copied when posted, whatever becomes of the memory, and need no key.
std::string inline_data(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, kBytes, {.max_inline = 24}));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  if (rank == 0) {
    std::array<char, 26> words{"scattered, not registered"};
    const auto at = reinterpret_cast<std::uint64_t>(words.data());
    const nic::Sge list[] = {{at, 9, 0}, {at + 11, 13, 0}};
    const nic::Sge too_much{at, 25, 0};
    const base::Result<void> refused = rig.qp->post_send({.sg_list = {&too_much, 1}, .inline_data = true});
    LACUNA_END_EXPECT(!refused && refused.error().message.find("25 bytes inline; this queue pair takes 24") != std::string::npos);
    const base::Result<void> read = rig.qp->post_send({.opcode = Opcode::read, .sg_list = {&list[0], 1}, .inline_data = true});
    LACUNA_END_EXPECT(!read && read.error().code == base::Code::invalid_argument);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 1, .sg_list = list, .inline_data = true}));
    LACUNA_END_TRY(rig.qp->post_send(
        {.wr_id = 2, .opcode = Opcode::write, .sg_list = list, .remote_addr = peer.addr + 100, .rkey = peer.key, .inline_data = true}));
    LACUNA_END_TRY(
        rig.qp->post_send({.wr_id = 3, .opcode = Opcode::write_imm, .remote_addr = peer.addr, .rkey = peer.key, .inline_data = true}));
    words.fill('x');
    LACUNA_END_TRY(barrier(bootstrap));
    for (int i = 0; i < 3; ++i) LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
  } else {
    LACUNA_END_TRY(barrier(bootstrap));
    const nic::Sge sge = rig.sge(0, 64);
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&sge, 1}}));
    LACUNA_END_TRY(rig.qp->post_recv({}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).byte_len == 22);
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).opcode == Opcode::recv_imm);
    const std::string expected = "scatterednot registere";
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data(), expected.data(), 22) == 0);
    LACUNA_END_EXPECT(std::memcmp(rig.buffer.data() + 100, expected.data(), 22) == 0);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// What a path says about passive targets is so: with a target that sleeps, writes and reads complete, or do not.
std::string passive_target(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  const bool passive = rig.context->limits().path(path)->passive_target;
  if (rank == 0) {
    for (const Opcode opcode : {Opcode::write, Opcode::read}) {
      const nic::Sge sge = rig.sge(0, 100);
      LACUNA_END_TRY(rig.qp->post_send({.opcode = opcode, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
      LACUNA_END_EXPECT(rig.next(passive ? kPatience : kSecond / 20).has_value() == passive);
    }
    LACUNA_END_TRY(barrier(bootstrap));  // until here the target did nothing
    for (int i = 0; i < (passive ? 0 : 2); ++i) LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    return release(rig, peer, 4088);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return serve(rig, 4088);
}

// One region of each end, by way of two connections: a provider may give a region another key on each.
std::string two_connections(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  const auto second = LACUNA_END_TRY(rig.context->connect(bootstrap, *rig.queue, {path, 16, 16}));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  std::fill_n(rig.buffer.data(), 4096, static_cast<std::byte>(rank + 1));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) {
    std::uint64_t at = 100;
    for (nic::QueuePair* pair : {rig.qp.get(), second.get(), rig.qp.get()}) {
      for (const Opcode opcode : {Opcode::read, Opcode::write}) {
        const nic::Sge sge = rig.sge(at, 100);
        LACUNA_END_TRY(pair->post_send({.opcode = opcode, .sg_list = {&sge, 1}, .remote_addr = peer.addr + at, .rkey = peer.key}));
        LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
        at += 100;
      }
    }
    for (std::size_t i = 0; i < 4088; ++i)
      LACUNA_END_EXPECT(rig.buffer.data()[i] == std::byte{i >= 100 && i < 700 && i / 100 % 2 == 1 ? std::uint8_t{2} : std::uint8_t{1}});
    return release(rig, peer, 4088);
  }
  if (std::string wrong = serve(rig, 4088); !wrong.empty()) return wrong;
  for (std::size_t i = 0; i < 4088; ++i)
    LACUNA_END_EXPECT(rig.buffer.data()[i] == std::byte{i >= 100 && i < 700 && i / 100 % 2 == 0 ? std::uint8_t{1} : std::uint8_t{2}});
  return {};
}

// The kernel stops where memory ends, after it has moved what came before: a partial return, then an error.
std::string hole(int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, nic::Path::kernel, kBytes));
  constexpr std::size_t page = 4096;
  auto* pages = static_cast<std::byte*>(mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  LACUNA_END_EXPECT(pages != MAP_FAILED);
  const nic::Region region = LACUNA_END_TRY(rig.context->register_memory({pages, 3 * page}, {}));
  if (rank == 1) take_away(pages + page, page);
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{region.addr(), region.rkey()}));
  if (rank == 0) {
    std::memset(rig.buffer.data(), 7, 3 * page);
    const nic::Sge sge = rig.sge(0, 3 * page);
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::write, .sg_list = {&sge, 1}, .remote_addr = peer.addr, .rkey = peer.key}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::rem_op_err);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) LACUNA_END_EXPECT(pages[0] == std::byte{7} && pages[page - 1] == std::byte{7} && pages[2 * page] == std::byte{0});
  munmap(pages, 3 * page);
  return {};
}
TEST(KernelPath, StopsAtAHoleTwoProcesses) {
  LACUNA_NEEDS_PATH(nic::Path::kernel);
  EXPECT_EQ(in_two_processes(hole), "");
}

LACUNA_ON_EVERY_PATH_BY_LISTS(OneSided, reads, 3)
LACUNA_ON_EVERY_PATH(OneSided, reads_pass_waiting_sends)
LACUNA_ON_EVERY_PATH_BY_LISTS(OneSided, immediates, 2)
LACUNA_ON_EVERY_PATH(OneSided, chains)
LACUNA_ON_EVERY_PATH(OneSided, silent_requests_fill_the_queue)
LACUNA_ON_EVERY_PATH_BY_LISTS(OneSided, inline_data, 2)
LACUNA_ON_EVERY_PATH(OneSided, passive_target)
LACUNA_ON_EVERY_PATH(OneSided, two_connections)
INSTANTIATE_TEST_SUITE_P(Nic, OneSided, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
