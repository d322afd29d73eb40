// Threads that begin sends pack at once: each is in the middle of its message when the other one is, too.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>

#include "tests/interposer/fake.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kThreads = 2;

// Memory of each thread that cannot be read until all threads want to.
struct Memory {
  static constexpr std::size_t kBytes = 4 << 20;
  static inline std::byte* threads[kThreads];
  static inline std::atomic<int> there;
  static inline std::atomic<bool> alone;  // somebody waited in vain

  Memory() {
    there = 0;
    alone = false;
    for (std::byte*& memory : threads) {
      memory = static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      EXPECT_NE(memory, MAP_FAILED);
    }
    struct sigaction action{};
    action.sa_sigaction = &fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Memory() {
    sigaction(SIGSEGV, &before_, nullptr);
    for (std::byte* memory : threads) munmap(memory, kBytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  static void fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
    for (std::byte* const memory : threads) {
      if (info->si_addr < memory || info->si_addr >= memory + kBytes) continue;
      ++there;
      for (const std::int64_t deadline = base::now_ns() + kPatience / 4; there < kThreads && !alone; sched_yield()) {
        if (base::now_ns() > deadline) alone = true;
      }
      mprotect(memory, kBytes, PROT_READ | PROT_WRITE);
      return;
    }
    signal(SIGSEGV, SIG_DFL);  // it comes again, and ends the program
  }
  struct sigaction before_{};
};

// One message of each thread, of so many ints with a gap behind each.
void expect_at_once(int count, int nodes) {
  const Memory memory;
  const Outcome outcome = run_preloaded({.nodes = nodes}, [&](const Host& mpi, int rank) {
    Datatype type = fake::vector(count, 1, 2, int_type());
    mpi.Type_commit(&type);
    if (rank == 0) {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.push_back(thread_of_rank([&, i] {
          Request request{};
          EXPECT_EQ(mpi.Isend(Memory::threads[i], 1, type, 1, i, mpi.world, &request), mpi::kSuccess);
          EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
        }));
      }
    } else {
      for (int i = 0; i < kThreads; ++i) {
        std::vector<int> received(2 * static_cast<std::size_t>(count), 7);
        EXPECT_EQ(mpi.Recv(received.data(), 1, type, 0, i, mpi.world, mpi::ignored()), mpi::kSuccess);
        EXPECT_EQ(received.front(), 0);
        EXPECT_EQ(received[received.size() - 2], 0);
      }
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  EXPECT_EQ(Memory::there, kThreads);
  EXPECT_FALSE(Memory::alone) << "a thread packs while the other may not";
}

TEST(InterposedThreads, PackShortMessagesAtOnce) { expect_at_once(1000, 1); }
TEST(InterposedThreads, PackOffersAtOnce) { expect_at_once(100'000, 1); }
TEST(InterposedThreads, PackChunksAtOnce) { expect_at_once(100'000, 2); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
