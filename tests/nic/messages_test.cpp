// Send, receive and write over every path: the bytes, their order, and what completes when.
#include <array>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Opcode;
using nic::Status;

class Messages : public EveryPath {};

std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 131 + (i >> 8)); }

// Lists of different cuts on both sides, with an empty entry in each.
std::string gather_scatter(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
  std::byte* bytes = rig.buffer.data();
  if (rank == 0) {
    for (std::size_t i = 0; i < 200'000; ++i) bytes[i] = pattern(i);
    const nic::Sge list[] = {rig.sge(0, 1), rig.sge(1, 100'000), rig.sge(7, 0), rig.sge(100'001, 99'999)};
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = 7, .sg_list = list}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.wr_id == 7 && done.status == Status::success && done.opcode == Opcode::send);
  } else {
    const nic::Sge list[] = {rig.sge(500'000, 50'000), rig.sge(0, 0), rig.sge(0, 33), rig.sge(300'000, 200'000)};
    LACUNA_END_TRY(rig.qp->post_recv({.wr_id = 9, .sg_list = list}));
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.wr_id == 9 && done.status == Status::success && done.opcode == Opcode::recv && done.byte_len == 200'000);
    std::size_t i = 0;
    for (std::size_t k = 0; k < 50'000; ++k) LACUNA_END_EXPECT(bytes[500'000 + k] == pattern(i++));
    for (std::size_t k = 0; k < 33; ++k) LACUNA_END_EXPECT(bytes[k] == pattern(i++));
    for (std::size_t k = 0; i < 200'000; ++k) LACUNA_END_EXPECT(bytes[300'000 + k] == pattern(i++));
    LACUNA_END_EXPECT(bytes[33] == std::byte{0} && bytes[550'000] == std::byte{0} && bytes[499'999] == std::byte{0});
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// More messages than receives are posted, sent before the receiver is ready, sizes from none to several slots.
std::string many(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  constexpr std::uint64_t messages = 500;
  const auto size_of = [](std::uint64_t m) -> std::size_t { return m % 7 == 0 ? 0 : m % 11 == 0 ? 100'000 : m * 3; };
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
  std::uint64_t posted = 0;
  for (std::uint64_t done = 0; done < messages;) {
    while (posted < messages && posted - done < 5) {
      const nic::Sge list = rig.sge(posted % 5 * 200'000, rank == 0 ? size_of(posted) : 150'000);
      if (rank == 0) {
        std::memset(rig.buffer.data() + posted % 5 * 200'000, static_cast<int>(posted & 0xff), size_of(posted));
        LACUNA_END_TRY(rig.qp->post_send({.wr_id = posted, .sg_list = {&list, 1}}));
      } else {
        LACUNA_END_TRY(rig.qp->post_recv({.wr_id = posted, .sg_list = {&list, 1}}));
      }
      ++posted;
    }
    const nic::Completion completion = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(completion.status == Status::success && completion.wr_id == done);
    if (rank == 1) {
      LACUNA_END_EXPECT(completion.byte_len == size_of(done));
      const std::byte* at = rig.buffer.data() + done % 5 * 200'000;
      for (std::size_t i = 0; i < size_of(done); ++i) LACUNA_END_EXPECT(at[i] == static_cast<std::byte>(done & 0xff));
    }
    ++done;
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// Writes gather at the source; unsignaled ones are silent; a later signaled one says that all before it are done.
std::string writes(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
  const Address peer = LACUNA_END_TRY(swap(bootstrap, Address{rig.region.addr(), rig.region.rkey()}));
  constexpr std::size_t flag_at = 900'000;
  if (rank == 0) {
    for (std::size_t i = 0; i < 400'000; ++i) rig.buffer.data()[i] = pattern(i);
    for (std::size_t k = 0; k < 20; ++k) {
      const nic::Sge list[] = {rig.sge(k * 20'000, 5'000), rig.sge(k * 20'000 + 5'000, 15'000)};
      LACUNA_END_TRY(rig.qp->post_send({.wr_id = k,
                                        .opcode = Opcode::write,
                                        .sg_list = list,
                                        .remote_addr = peer.addr + 3 + k * 20'000,
                                        .rkey = peer.key,
                                        .signaled = k == 19}));
    }
    const nic::Completion last = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(last.wr_id == 19 && last.status == Status::success && last.opcode == Opcode::write);
    const std::uint64_t one = 1;
    std::memcpy(rig.buffer.data(), &one, sizeof one);
    const nic::Sge flag = rig.sge(0, sizeof one);
    LACUNA_END_TRY(rig.qp->post_send(
        {.wr_id = 20, .opcode = Opcode::write, .sg_list = {&flag, 1}, .remote_addr = peer.addr + flag_at, .rkey = peer.key}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).wr_id == 20);
  } else {
    LACUNA_END_TRY(rig.flag(flag_at, 1));
    for (std::size_t i = 0; i < 400'000; ++i) LACUNA_END_EXPECT(rig.buffer.data()[3 + i] == pattern(i));
    LACUNA_END_EXPECT(rig.buffer.data()[2] == std::byte{0} && rig.buffer.data()[400'003] == std::byte{0});
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// Thousands of short pieces, more than one batch takes, or as many as a key does, cut differently at both ends; what
// lies between them stays.
std::string short_pieces(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  struct Cut {
    std::size_t shortest, longest;
  };
  for (const auto& [ours, theirs] : {std::pair{Cut{8, 8}, Cut{8, 8}}, {{16, 16}, {24, 24}}, {{1, 9}, {12, 12}}, {{1, 70}, {3, 200}}}) {
    Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 1 << 20));
    const auto stream = std::min<std::size_t>(30'000, static_cast<std::size_t>(rig.qp->limits().indirect.entries) * 4);
    const Cut& cut = rank == 0 ? ours : theirs;
    std::vector<nic::Sge> list;
    for (std::size_t done = 0, at = 1; done < stream;) {
      const std::size_t bytes = std::min(cut.shortest + list.size() * 7 % (cut.longest - cut.shortest + 1), stream - done);
      list.push_back(rig.sge(at, bytes));
      done += bytes;
      at += bytes + list.size() % 3 + 1;
    }
    const nic::IndirectKey key = LACUNA_END_TRY(rig.context->create_indirect_key(static_cast<int>(list.size())));
    const nic::Binding binding{.key = key.lkey(), .list = list};
    LACUNA_END_TRY(rig.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    LACUNA_END_EXPECT(LACUNA_END_TRY(rig.next()).status == Status::success);
    const nic::Sge whole{0, static_cast<std::uint32_t>(stream), key.lkey()};
    std::vector<std::byte> expected(rig.buffer.bytes().begin(), rig.buffer.bytes().end());
    for (std::size_t at = 0; const nic::Sge& piece : list) {
      for (std::size_t i = 0; i < piece.length; ++i) expected[piece.addr - rig.region.addr() + i] = pattern(at++);
    }
    if (rank == 0) {
      std::ranges::copy(expected, rig.buffer.data());
      LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&whole, 1}}));
    } else {
      LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&whole, 1}}));
    }
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.status == Status::success);
    LACUNA_END_EXPECT(std::ranges::equal(rig.buffer.bytes(), expected));
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

// A path that needs no shared memory works with any.
std::string ordinary_memory(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  std::vector<std::byte> heap(100'000, rank == 0 ? std::byte{42} : std::byte{0});
  const nic::Region region = LACUNA_END_TRY(rig.context->register_memory(heap, {}));
  LACUNA_END_EXPECT(!region.shared());
  const nic::Sge list{region.addr(), 100'000, region.lkey()};
  if (rank == 0) {
    LACUNA_END_TRY(rig.qp->post_send({.sg_list = {&list, 1}}));
  } else {
    LACUNA_END_TRY(rig.qp->post_recv({.sg_list = {&list, 1}}));
  }
  const nic::Completion done = LACUNA_END_TRY(rig.next());
  if (path == nic::Path::mapped) {
    LACUNA_END_EXPECT(done.status == (rank == 0 ? Status::rem_op_err : Status::loc_prot_err));
  } else {
    LACUNA_END_EXPECT(done.status == Status::success && heap == std::vector<std::byte>(100'000, std::byte{42}));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// Each receive has its own length: a message that is too long for it is an error at both ends, behind those that fit,
// though other receives would have taken it.
std::string lengths_of_receives(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Rig rig = LACUNA_END_TRY(Rig::make(bootstrap, path, 4096));
  constexpr std::array<std::uint32_t, 5> takes{10, 1000, 10, 50, 1000};
  constexpr std::array<std::uint32_t, 4> sent{10, 1000, 9, 51};
  std::memset(rig.buffer.data(), rank == 0 ? 1 : 2, 4096);
  for (std::uint64_t i = 0; rank == 1 && i < takes.size(); ++i) {
    const nic::Sge sge = rig.sge(0, takes[i]);
    LACUNA_END_TRY(rig.qp->post_recv({.wr_id = i, .sg_list = {&sge, 1}}));
  }
  LACUNA_END_TRY(barrier(bootstrap));
  for (std::uint64_t i = 0; rank == 0 && i < sent.size(); ++i) {
    const nic::Sge sge = rig.sge(0, sent[i]);
    LACUNA_END_TRY(rig.qp->post_send({.wr_id = i, .sg_list = {&sge, 1}}));
  }
  for (std::uint64_t i = 0; i < sent.size(); ++i) {
    const nic::Completion done = LACUNA_END_TRY(rig.next());
    LACUNA_END_EXPECT(done.wr_id == i);
    if (i + 1 < sent.size()) {
      LACUNA_END_EXPECT(done.status == Status::success && (rank == 0 || done.byte_len == sent[i]));
    } else {
      LACUNA_END_EXPECT(means(rank == 0 ? Status::rem_inv_req_err : Status::loc_len_err, done.status));
    }
  }
  LACUNA_END_EXPECT(rig.qp->fault() != nullptr);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

LACUNA_ON_EVERY_PATH_BY_LISTS(Messages, gather_scatter, 4)
LACUNA_ON_EVERY_PATH(Messages, lengths_of_receives)
LACUNA_ON_EVERY_PATH(Messages, many)
LACUNA_ON_EVERY_PATH_BY_KEYS(Messages, short_pieces)
LACUNA_ON_EVERY_PATH_BY_LISTS(Messages, writes, 2)
LACUNA_ON_EVERY_PATH(Messages, ordinary_memory)
INSTANTIATE_TEST_SUITE_P(Nic, Messages, testing::ValuesIn(tested_paths()), path_test_name);

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
