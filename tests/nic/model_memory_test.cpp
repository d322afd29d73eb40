// What memory costs in virtual time: address translations, the search for an entry of an indirect key, registration,
// and the CPU's copies. As in model_stages_test.cpp one thing costs something, and the times are exact.
#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using nic::Opcode;
using Result = base::Result<void>;

// --- translations ----------------------------------------------------------------------------------------------------

TEST(ModelTranslations, MissOncePerPage) {
  at_rank_0({{"nic.translation_miss_ns", 1000}}, [](ModelEnd& end) -> Result {
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 1}})), 2000);                        // at either end
    EXPECT_EQ(LACUNA_TRY(write(end, {{4095, 1}}, 4095)), 0);                  // the same pages
    EXPECT_EQ(LACUNA_TRY(write(end, {{4095, 2}})), 1000);                     // and the source's next one
    EXPECT_EQ(LACUNA_TRY(write(end, {{4 * 4096, 1}, {5 * 4096, 1}})), 2000);  // each entry its own
    // Three here; one behind them there, the others meanwhile
    EXPECT_EQ(LACUNA_TRY(write(end, {{8 * 4096, 3 * 4096}}, 10 * 4096)), 4000);
    EXPECT_EQ(LACUNA_TRY(write(end, {{8 * 4096, 3 * 4096}}, 10 * 4096)), 0);
    return {};
  });
}

TEST(ModelTranslations, ForgetThePageThatWasNotUsedForTheLongestTime) {
  at_rank_0({{"nic.translation_miss_ns", 1000}, {"nic.translations", 2}}, [](ModelEnd& end) -> Result {
    LACUNA_TRY(write(end, {{0, 1}}));
    const auto page = [&](std::size_t number) { return write(end, {{number * 4096, 1}}); };
    EXPECT_EQ(LACUNA_TRY(page(1)), 1000);
    EXPECT_EQ(LACUNA_TRY(page(0)), 0);
    EXPECT_EQ(LACUNA_TRY(page(2)), 1000);  // instead of page 1
    EXPECT_EQ(LACUNA_TRY(page(0)), 0);
    EXPECT_EQ(LACUNA_TRY(page(1)), 1000);
    EXPECT_EQ(LACUNA_TRY(page(2)), 1000);
    return {};
  });
  at_rank_0({{"nic.translation_miss_ns", 1000}, {"nic.translations", 0}}, [](ModelEnd& end) -> Result {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(LACUNA_TRY(write(end, {{0, 1}})), 2000);
    return {};
  });
}

// Pages count from a region's start, and belong to it: where memory happens to lie is not seen.
TEST(ModelTranslations, DoNotDependOnAddresses) {
  at_rank_0({{"nic.translation_miss_ns", 1000}}, [](ModelEnd& end) -> Result {
    LACUNA_TRY(write(end, {{0, 1}}));
    for (const std::size_t shift : {0UL, 1UL, 100UL, 4095UL}) {
      const nic::Region region = LACUNA_TRY(end.context->register_memory(end.buffer.bytes().subspan(shift), {}));
      const auto touch = [&](std::size_t from, std::uint32_t bytes) {
        const nic::Sge sge{region.addr() + from, bytes, region.lkey()};
        return write(end, {&sge, 1}, end.peer.addr, end.peer.key);
      };
      EXPECT_EQ(LACUNA_TRY(touch(0, 4096)), 1000) << shift;
      EXPECT_EQ(LACUNA_TRY(touch(4095, 1)), 0) << shift;
      EXPECT_EQ(LACUNA_TRY(touch(4096, 4096)), 1000) << shift;
    }
    return {};
  });
}

// --- indirect keys ---------------------------------------------------------------------------------------------------

struct Bound {
  nic::IndirectKey key;
  static base::Result<Bound> make(const ModelEnd& end, std::size_t entries, std::size_t bytes) {
    Bound bound{LACUNA_TRY(end.context->create_indirect_key(static_cast<int>(entries)))};
    std::vector<nic::Sge> list;
    for (std::size_t k = 0; k < entries; ++k) list.push_back(end.sge(k * (bytes + 100), bytes));
    const nic::Binding binding{.key = bound.key.lkey(), .list = list};
    LACUNA_TRY(end.qp->post_send({.opcode = Opcode::bind, .binding = &binding}));
    LACUNA_TRY(end.next());
    return bound;
  }
  [[nodiscard]] base::Result<std::int64_t> write(const ModelEnd& end, std::uint64_t from, std::uint32_t bytes) const {
    const nic::Sge sge{from, bytes, key.lkey()};
    return test::write(end, {&sge, 1}, end.peer.addr, end.peer.key);
  }
};

TEST(ModelSearch, PassesTheEntriesBeforeTheOneThatIsWanted) {
  at_rank_0({{"indirect.scan_ns", 1000}}, [](ModelEnd& end) -> Result {
    const Bound small = LACUNA_TRY(Bound::make(end, 8, 100));
    for (std::uint64_t k = 0; k < 8; ++k)
      EXPECT_EQ(LACUNA_TRY(small.write(end, k * 100 + 7, 50)), (static_cast<std::int64_t>(k) + 1) * 1000);
    EXPECT_EQ(LACUNA_TRY(small.write(end, 250, 200)), (3 + 4 + 5) * 1000);  // its list is searched anew for each
    const Bound large = LACUNA_TRY(Bound::make(end, 2, 2048));
    EXPECT_EQ(LACUNA_TRY(large.write(end, 0, 4096)), (1 + 1 + 2 + 2) * 1000);  // and for each packet of one
    EXPECT_EQ(LACUNA_TRY(write(end, {{0, 100}})), 0);
    return {};
  });
}

TEST(ModelSearch, BeginsAgainForTheSecondEntryOfAPacket) {
  at_rank_0({{"indirect.restart_ns", 1024}}, [](ModelEnd& end) -> Result {
    const Bound bound = LACUNA_TRY(Bound::make(end, 8, 512));
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 7 * 512, 512)), 0);                  // the first
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 1024)), 2 * 8);                   // the second of eight
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 8 * 512)), (2 + 4 + 6 + 8) * 8);  // of each packet
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 256, 1024)), (2 + 3) * 8);           // three in one
    return {};
  });
}

// A packet's first entry is looked for while it is fetched, the others behind that.
TEST(ModelSearch, OverlapsTheFetchOfAPacketsFirstEntry) {
  at_rank_0({{"indirect.scan_ns", 400}, {"nic.entry_ns", 1000}}, [](ModelEnd& end) -> Result {
    const Bound bound = LACUNA_TRY(Bound::make(end, 4, 100));
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 100)), 1000);
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 300, 100)), 1600);
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 200)), 1000 + 1000 + 800);
    return {};
  });
}

TEST(ModelSearch, TakesAsLongInTheReceiveEngine) {
  run(free_world({{"indirect.scan_ns", 1000}}), [](int rank, nic::World& world) -> Result {
    ModelEnd end = LACUNA_TRY(ModelEnd::make(world, rank));
    const Bound bound = LACUNA_TRY(Bound::make(end, 8, 100));
    const std::uint32_t peer = LACUNA_TRY(swap(*end.bootstrap, bound.key.rkey()));
    const nic::Sge sge = end.sge(0, 200);
    if (rank == 0) {
      EXPECT_EQ(LACUNA_TRY(write(end, {&sge, 1}, 500, peer)), (6 + 7) * 1000);
    }
    return end.meet();
  });
}

TEST(ModelCache, IsSharedByAllKeys) {
  const Parameters cache{{"indirect.cache_variant", 1}, {"indirect.capacity", 8}};
  Parameters miss = cache;
  miss["indirect.miss_ns"] = 1000;
  at_rank_0(miss, [](ModelEnd& end) -> Result {
    const Bound first = LACUNA_TRY(Bound::make(end, 8, 100));
    // Of 8 entries and room for 8 a half is missing; the last as any
    EXPECT_EQ(LACUNA_TRY(first.write(end, 700, 100)), 500);
    {
      const Bound second = LACUNA_TRY(Bound::make(end, 16, 100));
      EXPECT_EQ(LACUNA_TRY(first.write(end, 0, 100)), 750);
      EXPECT_EQ(LACUNA_TRY(first.write(end, 0, 200)), 1500);
      LACUNA_TRY(end.qp->post_send({.opcode = Opcode::invalidate, .rkey = second.key.rkey()}));
      LACUNA_TRY(end.next());
      EXPECT_EQ(LACUNA_TRY(first.write(end, 0, 100)), 500);
    }
    {
      const Bound third = LACUNA_TRY(Bound::make(end, 16, 100));
    }
    EXPECT_EQ(LACUNA_TRY(first.write(end, 0, 100)), 500);  // what is destroyed takes no room
    return {};
  });
  Parameters dependent = cache;
  dependent["indirect.dependent_ns"] = 1000;
  at_rank_0(dependent, [](ModelEnd& end) -> Result {
    const Bound bound = LACUNA_TRY(Bound::make(end, 8, 100));
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 100)), 0);
    EXPECT_EQ(LACUNA_TRY(bound.write(end, 0, 300)), 2 * 250);  // both are missing: a half of a half
    return {};
  });
}

// --- set-up ----------------------------------------------------------------------------------------------------------

TEST(ModelRegistration, CostsByThePage) {
  struct Case {
    const char* name;
    std::size_t bytes;
    std::int64_t made, undone;
  };
  for (const Case& c : {Case{"register.call_ns", 9000, 1000, 0},
                        {"register.page_ns", 4096, 1000, 0},
                        {"register.page_ns", 4097, 2000, 0},
                        {"register.undo_ns", 9000, 0, 1000},
                        {"register.undo_page_ns", 1, 0, 1000},
                        {"register.undo_page_ns", 8192, 0, 2000}}) {
    at_rank_0({{c.name, 1000}}, [&](ModelEnd& end) -> Result {
      nic::Region region;
      EXPECT_EQ(LACUNA_TRY(timed(end,
                                 [&]() -> Result {
                                   region = LACUNA_TRY(end.context->register_memory(end.buffer.bytes().subspan(1, c.bytes), {}));
                                   return {};
                                 })),
                c.made)
          << c.name;
      EXPECT_EQ(LACUNA_TRY(timed(end,
                                 [&]() -> Result {
                                   region = nic::Region();
                                   return {};
                                 })),
                c.undone)
          << c.name;
      return {};
    });
  }
}

TEST(ModelKeys, CostTheirEntriesBeyondThoseThatAreFree) {
  at_rank_0({{"register.key_ns", 1000}, {"register.key_entry_ns", 10}, {"register.key_free_entries", 4}}, [](ModelEnd& end) -> Result {
    for (const auto& [entries, cost] : {std::pair{1, 1000}, {4, 1000}, {5, 1010}, {104, 2000}}) {
      EXPECT_EQ(LACUNA_TRY(timed(end,
                                 [&, n = entries]() -> Result {
                                   LACUNA_TRY(end.context->create_indirect_key(n));
                                   return {};
                                 })),
                cost);
    }
    return {};
  });
}

// --- copies ----------------------------------------------------------------------------------------------------------

Layout blocks(std::int64_t count, std::int64_t bytes, std::int64_t stride) {
  return Layout::hvector(count, 1, stride, Layout::bytes(bytes).value()).value();
}
/// Of packing `length` bytes of a layout.
std::int64_t packing(const Parameters& on, const Layout& layout, std::int64_t length) {
  std::int64_t took = -1;
  at_rank_0(on, [&](ModelEnd& end) -> Result {
    const nic::Buffer memory = LACUNA_TRY(end.context->allocate(static_cast<std::size_t>(layout.true_extent() + layout.size()) + 1));
    std::byte* packed = memory.data() + layout.true_extent();
    took = LACUNA_TRY(timed(end, [&]() -> Result {
      end.context->pack(layout, memory.data(), 0, length, packed, copy::Caching::asked);
      return {};
    }));
    const std::int64_t back = LACUNA_TRY(timed(end, [&]() -> Result {
      end.context->unpack(layout, memory.data(), 0, length, packed, copy::Caching::asked);
      return {};
    }));
    EXPECT_EQ(back, took);
    return {};
  });
  return took;
}

TEST(ModelCopies, CostTheCallAndTheirBlocks) {
  const Layout layout = blocks(100, 10, 30);
  EXPECT_EQ(packing({{"copy.call_ns", 1000}}, layout, 1000), 1000);
  EXPECT_EQ(packing({{"copy.call_ns", 1000}}, layout, 0), 0);
  EXPECT_EQ(packing({{"copy.block_ns", 10}}, layout, 1000), 1000);
  EXPECT_EQ(packing({{"copy.block_ns", 10}}, layout, 500), 500);
  EXPECT_EQ(packing({{"copy.block_ns", 10}}, layout, 1), 10);
  EXPECT_EQ(packing({{"copy.block_ns", 10}}, blocks(100, 10, 10), 1000), 10);  // without a gap it is one
}

// Footprints: twice the bytes of what is dense. The caches have 100 KB and 1 MB, and miss nothing, then everything.
TEST(ModelCopies, CostTheirBytesByWhereTheyAre) {
  Parameters caches{{"copy.l2_bytes", 1e5},  {"copy.l2_none_percent", 100},  {"copy.l2_all_percent", 100},
                    {"copy.llc_bytes", 1e6}, {"copy.llc_none_percent", 100}, {"copy.llc_all_percent", 100},
                    {"copy.l2_gb_s", 1},     {"copy.llc_gb_s", 0.5},         {"copy.memory_gb_s", 0.25}};
  const auto dense = [&](std::int64_t bytes) { return packing(caches, Layout::bytes(bytes).value(), bytes); };
  EXPECT_EQ(dense(50'000), 50'000);
  EXPECT_EQ(dense(51'000), 2 * 51'000);
  EXPECT_EQ(dense(500'000), 2 * 500'000);
  EXPECT_EQ(dense(510'000), 4 * 510'000);
  // Whole lines of what is scattered: 1000 blocks of 10 bytes touch 10 KB packed and 42 KB as they lie. A part is where
  // the whole is.
  EXPECT_EQ(packing(caches, blocks(1000, 10, 200), 10'000), 10'000);
  EXPECT_EQ(packing(caches, blocks(2000, 10, 200), 20'000), 2 * 20'000);
  EXPECT_EQ(packing(caches, blocks(2000, 10, 200), 2'000), 2 * 2'000);
  caches["copy.l2_all_percent"] = 300;
  caches["copy.llc_none_percent"] = 1000;
  caches["copy.llc_all_percent"] = 2000;
  EXPECT_EQ(dense(100'000), 150'000);  // a half in each
  EXPECT_EQ(dense(150'000), 300'000);
}

TEST(ModelCopies, BeginTheirBlocksSlowlyBeyondTheSecondLevel) {
  Parameters ramp{{"copy.ramp_gb_s", 1}, {"copy.ramp_bytes", 64}, {"copy.l2_none_percent", 0}, {"copy.l2_all_percent", 0}};
  EXPECT_EQ(packing(ramp, blocks(10, 100, 300), 1000), 640);
  EXPECT_EQ(packing(ramp, blocks(10, 50, 300), 500), 500);
  EXPECT_EQ(packing(ramp, blocks(10, 100, 300), 500), 320);
  ramp["copy.l2_all_percent"] = ramp["copy.l2_none_percent"] = 1e4;
  EXPECT_EQ(packing(ramp, blocks(10, 100, 300), 1000), 0);
}

// Where each block misses everything, its bytes come meanwhile.
TEST(ModelCopies, MissForEachFarBlock) {
  Parameters far{{"copy.far_gap_bytes", 5000}, {"copy.far_block_ns", 100}};
  const std::int64_t apart = 100 + 5600;  // nine gaps, over ten blocks
  EXPECT_EQ(packing(far, blocks(10, 100, apart), 1000), 1000);
  EXPECT_EQ(packing(far, blocks(10, 100, 4000), 1000), 0);
  far["copy.memory_gb_s"] = 0.1;
  EXPECT_EQ(packing(far, blocks(10, 100, apart), 1000), 10'000);
}

TEST(ModelCopies, BetweenLayoutsAreOne) {
  at_rank_0({{"copy.call_ns", 1000}, {"copy.block_ns", 10}}, [](ModelEnd& end) -> Result {
    const nic::Buffer memory = LACUNA_TRY(end.context->allocate(20'000));
    for (const auto& [from, to] : {std::pair{blocks(40, 10, 30), blocks(10, 40, 90)}, {blocks(10, 40, 90), blocks(40, 10, 30)}}) {
      EXPECT_EQ(LACUNA_TRY(timed(end, [&] { return end.context->transpack(from, memory.data(), to, memory.data() + 10'000); })), 1400);
    }
    EXPECT_FALSE(end.context->transpack(blocks(1, 10, 10), memory.data(), blocks(1, 9, 9), memory.data()));
    return {};
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
