// What a memory watch must tell: everything that takes pages away, by any thread, before it is asked; and nothing else.
#include "lacuna/protocol/registration/memory_watch.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "tests/support/patience.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Watching.*");
LACUNA_TIER(gate, "Watching.UnderAttack");

using protocol::MemoryWatch;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 64 * kPage;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class Memory {
 public:
  explicit Memory(std::size_t bytes = kBytes, int kind = MAP_PRIVATE | MAP_ANONYMOUS) : bytes_(bytes) {
    at_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, -1, 0));
    std::memset(at_, 1, bytes);
  }
  // Without what is somebody else's by now: a page that was given back may belong to the C library or to a sanitizer
  ~Memory() {
    std::size_t from = 0;
    for (const std::size_t page : gone_) {
      if (page > from) munmap(at(from), (page - from) * kPage);
      from = page + 1;
    }
    if (from * kPage < bytes_) munmap(at(from), bytes_ - from * kPage);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::byte* at(std::size_t page) const { return at_ + page * kPage; }
  [[nodiscard]] std::span<std::byte> pages(std::size_t from, std::size_t count) const { return {at(from), count * kPage}; }
  /// Is no longer its own.
  void leave(std::size_t page) { gone_.insert(page); }
  void unmap(std::size_t page) {
    leave(page);
    munmap(at(page), kPage);
  }

 private:
  std::byte* at_;
  std::size_t bytes_;
  std::set<std::size_t> gone_;
};

class Watching : public testing::Test {
 protected:
  // It may say no for want of a CPU, but not for ever; of pages that are gone it always does.
  [[nodiscard]] testing::AssertionResult stays(MemoryWatch::Range range) const {
    const std::string wrong = await("a range that stays intact", [&] { return watch_->intact(range); });
    return wrong.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << wrong;
  }
  void SetUp() override {
    auto opened = MemoryWatch::open();
    if (!opened) GTEST_SKIP() << opened.error().text();
    watch_ = std::move(*opened);
  }
  std::unique_ptr<MemoryWatch> watch_;
};

TEST_F(Watching, TellsWhatTakesPagesAway) {
  struct Way {
    const char* name;
    bool unmaps;
    void (*take)(std::byte* page);
  };
  const Way kWays[] = {
      {"munmap", true, [](std::byte* page) { munmap(page, kPage); }},
      {"mmap over it", false,
       [](std::byte* page) { EXPECT_EQ(mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), page); }},
      {"MADV_DONTNEED", false, [](std::byte* page) { madvise(page, kPage, MADV_DONTNEED); }},
      {"MADV_FREE", false, [](std::byte* page) { madvise(page, kPage, MADV_FREE); }},
      {"mremap away", true,
       [](std::byte* page) {
         void* elsewhere = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         EXPECT_EQ(mremap(page, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere), elsewhere);
         munmap(elsewhere, kPage);
       }},
      {"mremap shorter", true, [](std::byte* page) { mremap(page - kPage, 2 * kPage, kPage, 0); }},
  };
  // Addresses of their own: those that were discarded cannot be watched again so soon
  std::vector<std::unique_ptr<Memory>> all;
  for (const auto& [name, unmaps, take] : kWays) {
    Memory& memory = *all.emplace_back(std::make_unique<Memory>());
    const auto before = watch_->begin(memory.pages(0, 10)).value();
    const auto hit = watch_->begin(memory.pages(10, 10).subspan(100, 9 * kPage)).value();
    const auto behind = watch_->begin(memory.pages(20, 10)).value();
    for (const auto range : {before, hit, behind}) EXPECT_TRUE(stays(range)) << name;
    if (unmaps) memory.leave(15);
    take(memory.at(15));
    EXPECT_FALSE(watch_->intact(hit)) << name;
    for (const auto range : {before, behind}) EXPECT_TRUE(stays(range)) << name;
    for (const auto range : {before, hit, behind}) watch_->release(range);
  }
}

// Where no thread can be started (here: its stack would be too long) that is an error, and the signals of the thread
// that asked are as before.
LACUNA_LEFT_OUT(thread, "Watching.WithoutAThreadIsAnError");  // that build chooses stacks by itself
TEST_F(Watching, WithoutAThreadIsAnError) {
  pthread_attr_t usual;
  pthread_attr_t wanted;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_getattr_default_np(&wanted), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&wanted, std::size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&wanted), 0);
  const auto opened = MemoryWatch::open();
  pthread_setattr_default_np(&usual);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, base::Code::limit) << opened.error().text();
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGUSR1), 0);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&wanted);
}

TEST_F(Watching, LeavesAloneWhatKeepsPages) {
  const Memory memory;
  const auto range = watch_->begin(memory.pages(0, 64)).value();
  std::memset(memory.at(0), 2, kBytes);
  EXPECT_EQ(mprotect(memory.at(3), kPage, PROT_READ), 0);
  EXPECT_EQ(mprotect(memory.at(3), kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(madvise(memory.at(5), kPage, MADV_WILLNEED), 0);
  for (int i = 0; i < 100; ++i) free(std::memset(std::malloc(1 << 20), 1, 1 << 20));
  EXPECT_TRUE(stays(range));
  watch_->release(range);
}

TEST_F(Watching, FreeIsSeen) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's free() keeps the pages";
  for (int i = 0; i < 50; ++i) {
    // More than glibc keeps, or has free after earlier tests
    auto* memory = static_cast<std::byte*>(std::malloc(512 << 20));
    std::memset(memory, 1, 1 << 20);
    const auto range = watch_->begin({memory + 16, 1 << 20});
    ASSERT_TRUE(range) << range.error().text();
    EXPECT_TRUE(stays(*range));
    std::free(memory);
    EXPECT_FALSE(watch_->intact(*range));
    watch_->release(*range);
  }
}

TEST_F(Watching, RangesThatOverlapAreWatchedUntilTheLastIsReleased) {
  Memory memory;
  const auto all = watch_->begin(memory.pages(0, 64)).value();
  const auto inner = watch_->begin(memory.pages(20, 10)).value();
  const auto across = watch_->begin(memory.pages(25, 20)).value();
  watch_->release(all);
  memory.unmap(50);  // of no range
  for (const auto range : {inner, across}) EXPECT_TRUE(stays(range));
  watch_->release(across);
  EXPECT_TRUE(stays(inner));
  memory.unmap(27);
  EXPECT_FALSE(watch_->intact(inner));
  watch_->release(inner);
}

TEST_F(Watching, WhatCannotBeWatchedIsRefused) {
  const Memory shared(kBytes, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(watch_->begin(shared.pages(0, 2)).error().code, base::Code::unsupported);
  Memory memory;
  memory.unmap(9);
  EXPECT_EQ(watch_->begin(memory.pages(8, 3)).error().code, base::Code::unsupported);
  EXPECT_EQ(watch_->begin({memory.at(0), 0}).error().code, base::Code::invalid_argument);
  // It is a moment ago for a second, in which this thread may have no CPU: then they are discarded once more.
  std::vector<std::unique_ptr<Memory>> all;  // addresses of their own
  const auto refused = [&] {
    const Memory& others = *all.emplace_back(std::make_unique<Memory>());
    const auto range = watch_->begin(others.pages(0, 4)).value();
    madvise(others.at(1), kPage, MADV_DONTNEED);
    EXPECT_FALSE(watch_->intact(range));
    watch_->release(range);
    EXPECT_TRUE(watch_->begin(others.pages(4, 2)));
    const auto again = watch_->begin(others.pages(0, 2));
    return !again && again.error().message.contains("discarded a moment ago");
  };
  EXPECT_EQ(await("a refusal of what was discarded", refused), "");
}

TEST_F(Watching, AChildKnowsNothing) {
  Memory memory;
  const auto range = watch_->begin(memory.pages(0, 8)).value();
  const pid_t child = fork();
  if (child == 0) {
    const bool told = !watch_->intact(range);
    munmap(memory.at(0), kPage);  // its own; nobody is waited for
    watch_.reset();
    _exit(told ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(stays(range));
  memory.unmap(7);
  EXPECT_FALSE(watch_->intact(range));
}

// While another thread maps the page anew, which to tsan is a write like any other.
[[gnu::noinline, gnu::no_sanitize("thread")]] std::uint64_t read_under_attack(const std::uint64_t* number) {
  return *static_cast<const volatile std::uint64_t*>(number);
}

// Others map anew, discard and move at the same addresses without pause. A range that is said to be intact still has
// the number that its pages had.
void attack(MemoryWatch& watch, int rounds) {
  constexpr std::size_t kPages = 8;
  const Memory memory(kPages * kPage);
  std::atomic<bool> over = false;
  // Us, now and then, or a watcher that others keep from its CPU never sees a page stay
  std::atomic<unsigned> rest = 1000;
  std::atomic<std::uint64_t> numbers = 1;
  const auto number_at = [&](std::size_t page) { return reinterpret_cast<std::uint64_t*>(memory.at(page)); };
  // Each has every second page, and discards only its last ones, which cannot be watched for a second.
  const auto vandal = [&](std::size_t which) {
    support::Random random(which);
    while (!over.load()) {
      const auto page = static_cast<std::size_t>(random.below(kPages / 2)) * 2 + which;
      if (page + 2 >= kPages) {
        madvise(memory.at(page), kPage, MADV_DONTNEED);
      } else if (random.one_in(2)) {
        mmap(memory.at(page), kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      } else {
        void* fresh = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mremap(fresh, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, memory.at(page));
      }
      __atomic_store_n(number_at(page), numbers.fetch_add(1), __ATOMIC_SEQ_CST);
      if (random.one_in(8)) usleep(static_cast<unsigned>(random.below(50)));
      if (random.one_in(32)) usleep(rest.load());
    }
  };
  std::jthread first(vandal, 0);
  std::jthread second(vandal, 1);
  support::Random random(3);
  int intact = 0;
  int gone = 0;
  // At least so many rounds, and more where other programs leave the threads little time to meet: an attack that eases
  // by the second.
  const auto enough = [&] { return intact > 100 && gone > 10; };
  const std::int64_t begun = base::now_ns();
  const auto passed = [&] { return static_cast<unsigned>((base::now_ns() - begun) / 1'000'000'000); };
  for (int round = 0; round < rounds || (!enough() && passed() < kPatience / 1'000'000'000); ++round) {
    rest = 1000 * (1 + passed());
    const auto page = static_cast<std::size_t>(random.below(kPages));
    const auto range = watch.begin(memory.pages(page, 1));
    if (!range) continue;  // discarded a moment ago, or another thread is at it
    const std::uint64_t number = read_under_attack(number_at(page));
    for (int look = 0; look < 20 && number != 0; ++look) {
      const std::uint64_t now = read_under_attack(number_at(page));
      const bool same = watch.intact(*range);
      ++(same ? intact : gone);
      if (!same) break;
      ASSERT_EQ(now, number) << "round " << round << ": pages that are said to be intact are others";
    }
    watch.release(*range);
  }
  over = true;
  EXPECT_TRUE(enough()) << intact << " looks at pages that were intact, " << gone << " at others";
}
TEST_F(Watching, UnderAttack) { attack(*watch_, kSanitized ? 5000 : 20'000); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
