// One-sided communication: what has gaps at the origin goes through a buffer, and is complete when the MPI says so.
#include <gtest/gtest.h>

#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kBytes = 4 * kCount;

enum class End { fence, complete, unlock, unlock_all, flush, flush_all, flush_local, flush_local_all, kEnds };
void end(const Host& mpi, End how, int target, Win win) {
  switch (how) {
    case End::complete: mpi.Win_complete(win); break;
    case End::unlock: mpi.Win_unlock(target, win); break;
    case End::unlock_all: mpi.Win_unlock_all(win); break;
    case End::flush: mpi.Win_flush(target, win); break;
    case End::flush_all: mpi.Win_flush_all(win); break;
    case End::flush_local: mpi.Win_flush_local(target, win); break;
    case End::flush_local_all: mpi.Win_flush_local_all(win); break;
    default: break;  // the fence that follows
  }
  mpi.Win_fence(0, win);
}

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// What rank 0 puts into the other's window, and gets from there; then the window of the other.
void put_and_get(const Host& mpi, int rank, End how, Win win, int* own) {
  Datatype type = every_second(mpi);
  for (int i = 0; i < kCount; ++i) own[i] = rank == 1 ? 1'000'000 + i : 0;
  mpi.Win_fence(0, win);
  const std::vector<int> out = numbers(7);
  std::vector<int> in = numbers(-100'000), untouched = numbers(-300'000);
  if (rank == 0) {
    mpi.Get(in.data(), 1, type, 1, 0, kCount, int_type(), win);
    mpi.Get(untouched.data(), 1, type, mpi::kProcNull, 0, kCount, int_type(), win);
    end(mpi, how, 1, win);
    for (int i = 0; i < 2 * kCount; ++i) ASSERT_EQ(in[static_cast<std::size_t>(i)], i % 2 == 0 ? 1'000'000 + i / 2 : i - 100'000);
    EXPECT_EQ(untouched, numbers(-300'000));
    mpi.Put(out.data(), 1, type, 1, 0, kCount, int_type(), win);
    end(mpi, how, 1, win);
  } else {
    mpi.Win_fence(0, win);
    mpi.Win_fence(0, win);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(own[i], 2 * i + 7);
  }
  mpi.Type_free(&type);
}

TEST(InterposedWindows, PutAndGet) {
  for (int how = 0; how < static_cast<int>(End::kEnds); ++how) {
    const Outcome outcome = run_preloaded({}, [&](const Host& mpi, int rank) {
      std::vector<int> own(kCount);
      Win win{};
      mpi.Win_create(own.data(), kBytes, 4, {}, mpi.world, &win);
      put_and_get(mpi, rank, static_cast<End>(how), win, own.data());
      mpi.Win_free(&win);
    });
    expect_sound(outcome);
  }
}

// By a window whose memory the MPI has, one of each kind.
TEST(InterposedWindows, OfTheMpisMemory) {
  for (const bool open_mpi : {false, true}) {
    for (const bool shared : {false, true}) {
      expect_sound(run_preloaded({.open_mpi = open_mpi}, [&](const Host& mpi, int rank) {
        int* own = nullptr;
        Win win{};
        (shared ? mpi.Win_allocate_shared : mpi.Win_allocate)(kBytes, 4, {}, mpi.world, &own, &win);
        put_and_get(mpi, rank, End::fence, win, own);
        mpi.Win_free(&win);
      }));
    }
  }
}

// Both ways at once, and more than may wait in buffers.
TEST(InterposedWindows, MoreThanThereIsRoomFor) {
  constexpr int kTimes = 4000;  // 80 MB
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> own(kCount), out = numbers(rank);
    Win win{};
    mpi.Win_create(own.data(), kBytes, 4, {}, mpi.world, &win);
    mpi.Win_fence(0, win);
    for (int i = 0; i < kTimes; ++i) mpi.Put(out.data(), 1, type, 1 - rank, 0, kCount, int_type(), win);
    mpi.Win_fence(0, win);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(own[static_cast<std::size_t>(i)], 2 * i + 1 - rank);
    mpi.Win_free(&win);
    mpi.Type_free(&type);
  }));
}

// A type that is freed before its operation is complete; operations with one target that end before another's.
TEST(InterposedWindows, TargetsEndOneByOne) {
  expect_sound(run_preloaded({.ranks = 3}, [](const Host& mpi, int rank) {
    std::vector<int> own(kCount, 100 * (rank + 1));
    Win win{};
    mpi.Win_create(own.data(), kBytes, 4, {}, mpi.world, &win);
    mpi.Win_fence(0, win);
    if (rank == 0) {
      Datatype type = every_second(mpi);
      std::vector<int> one = numbers(-100'000), two = numbers(-100'000);
      mpi.Get(one.data(), 1, type, 1, 0, kCount, int_type(), win);
      mpi.Get(two.data(), 1, type, 2, 0, kCount, int_type(), win);
      mpi.Type_free(&type);
      mpi.Win_flush(2, win);
      EXPECT_EQ(two[0], 300);
      EXPECT_EQ(one, numbers(-100'000));
      mpi.Win_flush(1, win);
      EXPECT_EQ(one[0], 200);
      EXPECT_EQ(one[1], -100'000 + 1);
    }
    mpi.Win_fence(0, win);
    mpi.Win_free(&win);
  }));
}

// Where the MPI refuses an operation, nothing waits for it.
TEST(InterposedWindows, WhatFails) {
  for (const char* const call : {"Put", "Get"}) {
    expect_sound(run_preloaded({},
                               [&](const Host& mpi, int rank) {
                                 Datatype type = every_second(mpi);
                                 std::vector<int> own(kCount), memory = numbers(-100'000);
                                 Win win{};
                                 mpi.Win_create(own.data(), kBytes, 4, {}, mpi.world, &win);
                                 if (rank == 0) {
                                   EXPECT_EQ(std::string_view(call) == "Put"
                                                 ? mpi.Put(memory.data(), 1, type, 1, 0, kCount, int_type(), win)
                                                 : mpi.Get(memory.data(), 1, type, 1, 0, kCount, int_type(), win),
                                             mpi::kErrOther);
                                 }
                                 mpi.Win_fence(0, win);
                                 EXPECT_EQ(memory, numbers(-100'000));
                                 mpi.Win_free(&win);
                                 mpi.Win_create_dynamic({}, mpi.world, &win);
                                 mpi.Win_free(&win);
                                 mpi.Type_free(&type);
                               },
                               {{.call = call}}));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
