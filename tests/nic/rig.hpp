// One end of a connection with a buffer, for tests of the NIC seam.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/mlx5/fake.hpp"
#include "tests/support/ofi/narrow.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {

inline constexpr std::int64_t kSecond = 1'000'000'000;
/// The NIC that is tested: "local", or what LACUNA_TEST_NIC names: "fake" is NIC verbs on the fake of an mlx5 device,
/// of whose tests those of two threads can be run, and "pins" the same with pages that are really pinned; "narrow" is
/// NIC ofi on provider tcp, as strict as providers may be, and "attended" the same provider with a thread that answers
/// peers; `make test-rdma` runs those of two processes with the device of its machine.
inline std::string tested_nic() {
  const char* named = std::getenv("LACUNA_TEST_NIC");
  return named == nullptr ? "local" : named;
}
inline bool tests_ofi() { return tested_nic().starts_with("ofi") || tested_nic() == "narrow" || tested_nic() == "attended"; }
inline base::Result<std::unique_ptr<nic::Context>> open_tested(nic::OpenOptions options = {}) {
  if (tested_nic() == "narrow") return ofi::open_narrow(options);
  if (tested_nic() == "attended") {
    options.attended = true;
    return nic::open("ofi:tcp", options);
  }
  if (tested_nic() == "pins") LACUNA_TRY(mlx5::pin_pages());
  return tested_nic() == "fake" || tested_nic() == "pins" ? mlx5::open(options) : nic::open(tested_nic(), options);
}
inline std::vector<nic::Path> tested_paths() {
  if (tested_nic() != "local") return {nic::Path::wire};
  return {nic::Path::mapped, nic::Path::slots, nic::Path::kernel};
}

// Whether a status is the one that is wanted, or what Soft-RoCE says for it, which tells fewer causes apart.
inline bool means(nic::Status wanted, nic::Status got) {
  using enum nic::Status;
  if (got == wanted || !tested_nic().starts_with("verbs")) return got == wanted;
  if (wanted == rem_inv_req_err) return got == rem_op_err;
  return (wanted == loc_prot_err || wanted == loc_len_err) && got == loc_qp_op_err;
}

/// Pages that nothing can read or write any more. Their addresses stay taken, or others' memory could come there in the
/// middle of a test.
inline void take_away(std::byte* pages, std::size_t bytes) {
  ASSERT_EQ(mmap(pages, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), pages);
}

struct Rig {
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<nic::CompletionQueue> queue;
  std::unique_ptr<nic::QueuePair> qp;
  nic::Buffer buffer;
  nic::Region region;

  static base::Result<Rig> make(nic::Bootstrap& bootstrap, nic::Path path, std::size_t bytes, const nic::OpenOptions& options = {},
                                nic::Rights rights = {}, int completions = 256) {
    Rig rig;
    rig.context = LACUNA_TRY(open_tested(options));
    rig.queue = LACUNA_TRY(rig.context->create_completion_queue(completions));
    const int depth = std::min({64, rig.context->limits().max_send_wr, rig.context->limits().max_recv_wr});
    rig.qp = LACUNA_TRY(rig.context->connect(bootstrap, *rig.queue, {path, depth, depth}));
    rig.buffer = LACUNA_TRY(rig.context->allocate(bytes));
    rig.region = LACUNA_TRY(rig.context->register_memory(rig.buffer.bytes(), rights));
    return rig;
  }

  [[nodiscard]] nic::Sge sge(std::size_t offset, std::size_t length) const {
    return {region.addr() + offset, static_cast<std::uint32_t>(length), region.lkey()};
  }

  /// Polls until `holds`; an error after `timeout`, which says for `what` it waited.
  template <class Holds>
  base::Result<void> until(std::string_view what, const Holds& holds, std::int64_t timeout = kPatience) {
    const std::int64_t deadline = context->now() + timeout;
    while (!holds()) {
      if (const auto waited = context->wait(deadline); !waited) return base::fail(waited.error().code, in_vain(what, timeout));
    }
    return {};
  }
  /// The next completion; an error after `timeout`.
  base::Result<nic::Completion> next(std::int64_t timeout = kPatience) {
    nic::Completion completion;
    LACUNA_TRY(until("a completion", [&] { return context->poll(*queue, {&completion, 1}) > 0; }, timeout));
    return completion;
  }
  /// Polls until the queue pair is in error.
  base::Result<base::Error> fault(std::int64_t timeout = kPatience) {
    const auto faulty = [&] {
      if (qp->fault() == nullptr) context->poll(*queue, {});
      return qp->fault() != nullptr;
    };
    LACUNA_TRY(until("the queue pair to fail", faulty, timeout));
    return *qp->fault();
  }
  /// Polls until the peer has set a word of the buffer to this value.
  base::Result<void> flag(std::size_t offset, std::uint64_t value) {
    const auto* word = reinterpret_cast<const std::uint64_t*>(buffer.data() + offset);
    return until("the peer's flag", [&] {
      if (context->load_flag(word) == value) return true;
      context->poll(*queue, {});
      return false;
    });
  }
};

/// Where a peer's memory is: exchanged out of band.
struct Address {
  std::uint64_t addr;
  std::uint32_t key;
};

template <class T>
base::Result<T> swap(nic::Bootstrap& bootstrap, const T& mine) {
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(hello, kPatience));
  T value{};
  if (theirs.bytes.size() != sizeof value) return base::fail(base::Code::malformed, "another type");
  std::memcpy(&value, theirs.bytes.data(), sizeof value);
  return value;
}

/// Both ends are here.
inline base::Result<int> barrier(nic::Bootstrap& bootstrap) { return swap(bootstrap, 0); }

/// After an error: another connection between the same two contexts takes a message, while the old one is still there.
inline std::string works_again(nic::Context& context, nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const auto queue = LACUNA_END_TRY(context.create_completion_queue(16));
  const auto qp = LACUNA_END_TRY(context.connect(bootstrap, *queue, {path, 4, 4}));
  const nic::RegisteredBuffer memory = LACUNA_END_TRY(nic::RegisteredBuffer::create(context, 8));
  const nic::Sge sge = memory.sge(0, 8);
  const std::uint64_t number = 0x123456789abcdef;
  if (rank == 1) LACUNA_END_TRY(qp->post_recv({.sg_list = {&sge, 1}}));
  LACUNA_END_TRY(barrier(bootstrap));  // a device may give up on a receiver that has posted nothing yet
  if (rank == 0) {
    std::memcpy(memory.buffer.data(), &number, sizeof number);
    LACUNA_END_TRY(qp->post_send({.sg_list = {&sge, 1}}));
  }
  const std::int64_t deadline = context.now() + kPatience;
  nic::Completion completion;
  while (context.poll(*queue, {&completion, 1}) == 0) LACUNA_END_TRY(context.wait(deadline));
  LACUNA_END_EXPECT(completion.status == nic::Status::success && std::memcmp(memory.buffer.data(), &number, sizeof number) == 0);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

class EveryPath : public testing::TestWithParam<nic::Path> {};
inline std::string path_test_name(const testing::TestParamInfo<nic::Path>& info) { return std::string(nic::path_name(info.param)); }

/// One scenario(path, rank, bootstrap) as two processes and as two threads.
#define LACUNA_ON_EVERY_PATH(suite, scenario)                                                                    \
  TEST_P(suite, scenario##TwoProcesses) {                                                                        \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), ""); \
  }                                                                                                              \
  TEST_P(suite, scenario##TwoThreads) {                                                                          \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), "");   \
  }

/// The same for what posts lists of this many entries.
#define LACUNA_ON_EVERY_PATH_BY_LISTS(suite, scenario, entries)                                                  \
  TEST_P(suite, scenario##TwoProcesses) {                                                                        \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    LACUNA_NEEDS_LISTS(entries);                                                                                 \
    EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), ""); \
  }                                                                                                              \
  TEST_P(suite, scenario##TwoThreads) {                                                                          \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    LACUNA_NEEDS_LISTS(entries);                                                                                 \
    EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), "");   \
  }

/// The same for what indirect keys do.
#define LACUNA_ON_EVERY_PATH_BY_KEYS(suite, scenario)                                                            \
  TEST_P(suite, scenario##TwoProcesses) {                                                                        \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    LACUNA_NEEDS_KEYS();                                                                                         \
    EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), ""); \
  }                                                                                                              \
  TEST_P(suite, scenario##TwoThreads) {                                                                          \
    LACUNA_NEEDS_PATH(GetParam());                                                                               \
    LACUNA_NEEDS_KEYS();                                                                                         \
    EXPECT_EQ(in_two_threads([&](int rank, nic::Bootstrap& b) { return scenario(GetParam(), rank, b); }), "");   \
  }

/// Skips, visibly, where there are no indirect keys.
#define LACUNA_NEEDS_KEYS()                                                                    \
  if (const auto opened_ = open_tested(); !opened_ || (*opened_)->limits().indirect.keys == 0) \
  GTEST_SKIP() << (opened_ ? tested_nic() + " has no indirect keys" : opened_.error().text())

/// Skips, visibly, where lists are shorter.
#define LACUNA_NEEDS_LISTS(entries)                                                          \
  if (const auto opened_ = open_tested(); opened_ && (*opened_)->limits().max_sge < entries) \
  GTEST_SKIP() << tested_nic() << " takes lists of " << (*opened_)->limits().max_sge << " entries"

/// Skips, visibly, where the system refuses a path.
#define LACUNA_NEEDS_PATH(wanted)                                                                                             \
  do {                                                                                                                        \
    const auto context_ = open_tested();                                                                                      \
    ASSERT_TRUE(context_) << context_.error().text();                                                                         \
    const nic::PathInfo* info_ = (*context_)->limits().path(wanted);                                                          \
    if (info_ == nullptr || !info_->available) GTEST_SKIP() << "path " << nic::path_name(wanted) << " is not available here"; \
  } while (false)

}  // namespace lacuna::test
