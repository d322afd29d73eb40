// What the cache of registrations finds, keeps and gives up.
#include "tests/protocol/registration/registrations_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using protocol::Registrations;

constexpr nic::Rights kReads{.local_write = false, .remote_write = false, .remote_read = true, .relaxed = true};
constexpr nic::Rights kWrites{.local_write = true, .remote_write = true, .remote_read = false, .relaxed = true};

class Registering : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_pinning();
    if (!opened) GTEST_SKIP() << opened.error().text();
    context_ = std::move(*opened);
    auto watch = protocol::MemoryWatch::shared();
    if (!watch) GTEST_SKIP() << watch.error().text();
    watch_ = std::move(*watch);
    watch_->be_patient(kPatience);  // a watch may say no for want of a CPU, and memory is registered anew then
  }
  [[nodiscard]] std::unique_ptr<Registrations> make(Registrations::Options options = {}) {
    options.worth_ns = 0;
    return std::make_unique<Registrations>(*context_, options);
  }
  static bool found(Registrations& cache, std::span<std::byte> bytes, nic::Rights rights = kReads) {
    const std::int64_t before = cache.statistics().found;
    EXPECT_TRUE(cache.lease(bytes, rights));
    return cache.statistics().found > before;
  }
  std::unique_ptr<nic::Context> context_;
  std::shared_ptr<protocol::MemoryWatch> watch_;
};

TEST_F(Registering, FindsWhatCoversIt) {
  const Pages memory(32);
  const auto cache = make();
  ASSERT_EQ(cache->mode(), Registrations::Mode::watched) << cache->why();
  EXPECT_FALSE(found(*cache, memory.pages(4, 8)));
  EXPECT_TRUE(found(*cache, memory.pages(4, 8)));
  EXPECT_TRUE(found(*cache, memory.pages(4, 8), kWrites));
  EXPECT_TRUE(found(*cache, memory.pages(5, 2).subspan(7, 100)));
  EXPECT_FALSE(found(*cache, memory.pages(3, 2)));
  EXPECT_FALSE(found(*cache, memory.pages(11, 2)));
  EXPECT_TRUE(cache->has(memory.pages(4, 1), kReads));
  EXPECT_FALSE(cache->has(memory.pages(0, 1), kReads));
  EXPECT_FALSE(cache->has(memory.pages(4, 1), {.relaxed = false})) << "bytes of a relaxed region land in any order";
  EXPECT_EQ(cache->statistics().entries, 3);
  EXPECT_EQ(cache->statistics().bytes, static_cast<std::int64_t>(12 * kPage));
  const auto lease = cache->lease(memory.pages(6, 1), kReads);
  EXPECT_EQ(lease->region().addr(), reinterpret_cast<std::uint64_t>(memory.at(4)));
}

TEST_F(Registering, AShortEntryInFrontHidesNoLongOne) {
  const Pages memory(32);
  const auto cache = make();
  EXPECT_FALSE(found(*cache, memory.pages(0, 32)));
  EXPECT_TRUE(found(*cache, memory.pages(0, 32)));
  const auto other = make();
  EXPECT_FALSE(found(*other, memory.pages(10, 1)));
  EXPECT_FALSE(found(*other, memory.pages(0, 32)));
  EXPECT_FALSE(found(*other, Pages(1).pages(0, 1)));
  EXPECT_TRUE(found(*other, memory.pages(11, 5))) << "behind one that begins later and ends earlier";
}

TEST_F(Registering, WhatIsUsedLeastGoesFirst) {
  const Pages memory(8);
  const auto cache = make({.most = 3});
  for (const std::size_t page : {0, 2, 4}) EXPECT_FALSE(found(*cache, memory.pages(page, 1)));
  EXPECT_TRUE(found(*cache, memory.pages(0, 1)));
  EXPECT_FALSE(found(*cache, memory.pages(6, 1)));  // 2 goes
  EXPECT_EQ(cache->statistics().evicted, 1);
  EXPECT_TRUE(found(*cache, memory.pages(0, 1)));
  EXPECT_TRUE(found(*cache, memory.pages(4, 1)));
  EXPECT_FALSE(found(*cache, memory.pages(2, 1)));
  EXPECT_EQ(cache->statistics().entries, 3);
}

TEST_F(Registering, BytesAreLimitedToo) {
  const Pages memory(16);
  const auto cache = make({.most_bytes = 5 * kPage});
  EXPECT_FALSE(found(*cache, memory.pages(0, 3)));
  EXPECT_FALSE(found(*cache, memory.pages(4, 2)));
  EXPECT_TRUE(found(*cache, memory.pages(0, 3)));
  EXPECT_FALSE(found(*cache, memory.pages(8, 1)));  // 4 and 5 go
  EXPECT_TRUE(found(*cache, memory.pages(0, 3)));
  EXPECT_FALSE(found(*cache, memory.pages(4, 2)));
  const auto held = cache->lease(memory.pages(9, 7), kReads);  // more than there may be
  EXPECT_TRUE(held);
  EXPECT_GT(cache->statistics().bytes, static_cast<std::int64_t>(5 * kPage)) << "what is in use does not go";
}

TEST_F(Registering, WhatIsFreedIsNeverFound) {
  const auto cache = make();
  for (int round = 0; round < 20; ++round) {
    auto memory = std::make_unique<Pages>(4);
    EXPECT_FALSE(found(*cache, memory->pages(0, 4))) << "round " << round << ", at the same address";
    std::byte* const at = memory->at(0);
    memory.reset();
    EXPECT_FALSE(cache->has({at, kPage}, kReads));
  }
  EXPECT_EQ(cache->statistics().changed, 20);
  EXPECT_EQ(cache->statistics().entries, 0);
}

TEST_F(Registering, WhatChangesWhileItIsInUseGoesWithItsLastLease) {
  const Pages memory(4);
  const auto cache = make();
  auto lease = cache->lease(memory.pages(0, 4), kReads);
  const std::uint32_t key = lease->region().lkey();
  EXPECT_EQ(mmap(memory.at(1), kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), memory.at(1));
  memory.at(1)[0] = std::byte{1};
  auto second = cache->lease(memory.pages(0, 4), kReads);
  ASSERT_TRUE(second);
  EXPECT_NE(second->region().lkey(), key);
  EXPECT_EQ(lease->region().lkey(), key);
  *lease = {};
  EXPECT_EQ(cache->statistics().entries, 1);
}

TEST_F(Registering, MemoryThatNobodyCanWatchIsRegisteredEachTime) {
  auto* shared = static_cast<std::byte*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto cache = make();
  EXPECT_FALSE(found(*cache, {shared, kPage}));
  EXPECT_FALSE(found(*cache, {shared, kPage}));
  EXPECT_EQ(cache->statistics().unwatched, 2);
  EXPECT_EQ(cache->statistics().entries, 0);
  munmap(shared, kPage);
}

TEST_F(Registering, WhatIsHeldStays) {
  const Pages memory(8);
  const auto cache = make({.keep = false});
  EXPECT_EQ(cache->mode(), Registrations::Mode::each_transfer);
  EXPECT_FALSE(found(*cache, memory.pages(0, 2)));
  EXPECT_FALSE(found(*cache, memory.pages(0, 2)));
  const std::uint32_t held = cache->hold(memory.pages(0, 4)).value();
  EXPECT_TRUE(found(*cache, memory.pages(0, 2)));
  EXPECT_TRUE(found(*cache, memory.pages(0, 2)));
  EXPECT_TRUE(cache->release(held));
  EXPECT_FALSE(found(*cache, memory.pages(1, 1)));
  EXPECT_EQ(cache->release(held).error().code, base::Code::invalid_argument);
  EXPECT_EQ(cache->statistics().entries, 0);
}

TEST_F(Registering, ConstantsAreOnlyRead) {
  if (!tests_a_device()) GTEST_SKIP() << "io_uring pins no memory that cannot be written";
  const Pages memory(2);
  mprotect(memory.at(0), 2 * kPage, PROT_READ);
  const auto cache = make();
  const auto read = cache->lease(memory.pages(0, 2), kReads);
  EXPECT_TRUE(read) << read.error().text();
  EXPECT_FALSE(cache->lease(memory.pages(0, 2), kWrites));
  mprotect(memory.at(0), 2 * kPage, PROT_READ | PROT_WRITE);
}

TEST_F(Registering, WhatStandsForARegionGoesBeforeIt) {
  const Pages memory(4);
  int forgotten = 0;
  const auto cache = make({.forget = [&](const nic::Region& region) -> base::Result<void> {
    EXPECT_EQ(region.addr(), reinterpret_cast<std::uint64_t>(memory.at(0)));
    EXPECT_NE(region.lkey(), 0U);
    ++forgotten;
    return {};
  }});
  cache->lease(memory.pages(0, 2), kReads)->bound();
  cache->clear();
  EXPECT_EQ(forgotten, 1);
  EXPECT_FALSE(found(*cache, memory.pages(2, 2)));
  cache->clear();
  EXPECT_EQ(forgotten, 1) << "of a region that nothing stood for";
}

TEST(RegistrationModes, AreSaid) {
  const auto local = nic::open("local");
  ASSERT_TRUE(local);
  const Registrations cheap(**local, {.worth_ns = 1e15});  // what they cost is measured, on a machine that may be busy
  EXPECT_EQ(cheap.mode(), Registrations::Mode::each_transfer);
  EXPECT_TRUE(cheap.why().contains("they cost")) << cheap.why();
  const Registrations asked(**local, {.keep = false});
  EXPECT_TRUE(asked.why().contains("as was asked for"));
  const Registrations by_address(**local, {.worth_ns = 0});
  EXPECT_EQ(by_address.mode(), Registrations::Mode::by_address) << by_address.why();
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
