// The pool and cache of indirect keys: what is found again, what is bound anew, what is never taken away, and what is
// left when a region goes.
#include "lacuna/method/key_cache.hpp"

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using method::Counters;
using method::Endpoint;
using method::KeyCache;

constexpr nic::Rights kLocal{.remote_write = false, .remote_read = false};

Layout blocks(std::int64_t count, std::int64_t stride) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < count; ++i) offsets.push_back(i * stride + i * i % 7);  // no loop
  return Layout::blocks(offsets, std::vector<std::int64_t>(offsets.size(), 10)).value();
}

// An endpoint with a cache of `keys` keys, and a peer that only waits.
class Bench {
 public:
  static base::Result<Bench> make(nic::Bootstrap& bootstrap, int keys) {
    Bench bench;
    bench.context = LACUNA_TRY(open_tested({.indirect = {.keys = keys}}));
    bench.endpoint = LACUNA_TRY(Endpoint::connect(*bench.context, bootstrap, nic::Path::mapped));
    bench.buffer = LACUNA_TRY(bench.context->allocate(1 << 20));
    bench.region = LACUNA_TRY(bench.context->register_memory(bench.buffer.bytes(), {}));
    return bench;
  }
  base::Result<std::optional<KeyCache::Lease>> lease(const Layout& layout, std::int64_t offset, nic::Rights rights = kLocal) {
    counters = {};
    return endpoint->keys().lease(
        {layout, buffer.data() + offset, region, {0, layout.size()}, method::key_room(endpoint->limits()), rights}, counters);
  }
  base::Result<KeyCache::Lease> bound(const Layout& layout, std::int64_t offset, nic::Rights rights = kLocal) {
    std::optional<KeyCache::Lease> lease = LACUNA_TRY(this->lease(layout, offset, rights));
    if (!lease) return base::fail(base::Code::limit, "no lease");
    const std::int64_t deadline = context->now() + kPatience;
    while (!lease->bound()) {
      if (endpoint->poll() == 0) LACUNA_TRY(context->wait(deadline));
    }
    return std::move(*lease);
  }

  std::unique_ptr<nic::Context> context;
  std::unique_ptr<Endpoint> endpoint;
  nic::Buffer buffer;
  nic::Region region;
  Counters counters;
};

using Scenario = std::string (*)(Bench&);
std::string run(Scenario scenario, int keys) {
  return in_two_threads([&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    Bench bench = LACUNA_END_TRY(Bench::make(bootstrap, keys));
    const std::string wrong = rank == 0 ? scenario(bench) : "";
    LACUNA_END_TRY(barrier(bootstrap));
    return wrong;
  });
}

std::string hits(Bench& b) {
  std::uint32_t key = 0;
  {
    const auto first = LACUNA_END_TRY(b.bound(blocks(20, 50), 0));
    LACUNA_END_EXPECT(b.counters.keys_created == 1 && b.counters.keys_bound == 1 && b.counters.key_entries == 20);
    LACUNA_END_EXPECT(b.counters.work_requests == 1);
    key = first.key();
    const auto second = LACUNA_END_TRY(b.bound(blocks(20, 50), 0));  // the same while the first is out
    LACUNA_END_EXPECT(second.key() == key && b.counters.keys_bound == 0 && b.counters.work_requests == 0);
  }
  LACUNA_END_EXPECT(LACUNA_END_TRY(b.bound(blocks(20, 50), 0)).key() == key && b.counters.keys_bound == 0);
  // Another address, other rights, another layout: other bindings.
  LACUNA_END_EXPECT(LACUNA_END_TRY(b.bound(blocks(20, 50), 8)).key() != key && b.counters.keys_bound == 1);
  LACUNA_END_EXPECT(LACUNA_END_TRY(b.bound(blocks(20, 50), 0, {})).key() != key && b.counters.keys_bound == 1);
  LACUNA_END_EXPECT(LACUNA_END_TRY(b.bound(blocks(20, 50), 0, {.local_write = false, .remote_write = false, .remote_read = false})).key() !=
                        key &&
                    b.counters.keys_bound == 1);
  LACUNA_END_EXPECT(LACUNA_END_TRY(b.bound(blocks(20, 51), 0)).key() != key && b.counters.keys_bound == 1);
  LACUNA_END_EXPECT(b.endpoint->keys().size() == 5);
  // One run needs no key.
  const auto direct = LACUNA_END_TRY(b.bound(Layout::bytes(100).value(), 24));
  LACUNA_END_EXPECT(direct.key() == b.region.lkey() && direct.addr() == b.region.addr() + 24 && b.counters.keys_bound == 0);
  return {};
}

// Full, the pool binds the key that was not used for longest, and never one that is out.
std::string eviction(Bench& b) {
  const auto a = [&](std::int64_t offset) { return b.bound(blocks(20, 50), offset); };
  const std::uint32_t one = LACUNA_END_TRY(a(0)).key();
  const std::uint32_t two = LACUNA_END_TRY(a(8)).key();
  const std::uint32_t three = LACUNA_END_TRY(a(16)).key();
  LACUNA_END_EXPECT(LACUNA_END_TRY(a(0)).key() == one && b.counters.keys_bound == 0);
  LACUNA_END_EXPECT(LACUNA_END_TRY(a(24)).key() == two && b.counters.keys_created == 0 && b.counters.keys_bound == 1);
  LACUNA_END_EXPECT(LACUNA_END_TRY(a(16)).key() == three && b.counters.keys_bound == 0);
  LACUNA_END_EXPECT(LACUNA_END_TRY(a(8)).key() == one && b.counters.keys_bound == 1);
  const auto out_1 = LACUNA_END_TRY(a(16));
  const auto out_2 = LACUNA_END_TRY(a(24));
  const auto out_3 = LACUNA_END_TRY(a(8));
  const auto none = b.lease(blocks(20, 50), 32);
  LACUNA_END_EXPECT(!none && none.error().message.find("all 3 indirect keys are held") != std::string::npos);
  LACUNA_END_EXPECT(b.endpoint->keys().size() == 3);
  return {};
}

// The keys belong to the context: where another endpoint has taken them, this one makes do with those it has, and says
// so when it has none.
std::string sharing(int rank, nic::Bootstrap& bootstrap) {
  Bench b = LACUNA_END_TRY(Bench::make(bootstrap, 2));
  const auto other = LACUNA_END_TRY(Endpoint::connect(*b.context, bootstrap, nic::Path::mapped));
  if (rank == 0) {
    LACUNA_END_TRY(b.bound(blocks(20, 50), 0));
    LACUNA_END_TRY(b.bound(blocks(20, 50), 8));
    const auto refused =
        other->keys().lease({blocks(20, 50), b.buffer.data(), b.region, {0, 200}, method::key_room(other->limits()), kLocal}, b.counters);
    LACUNA_END_EXPECT(!refused && refused.error().message.find("2 indirect keys exist") != std::string::npos);
  }
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// A key that is too small for a list gives way to a larger one.
std::string growth(Bench& b) {
  LACUNA_END_TRY(b.bound(blocks(20, 50), 0));
  LACUNA_END_TRY(b.bound(blocks(500, 50), 0));
  LACUNA_END_EXPECT(b.counters.keys_created == 1 && b.counters.key_entries == 500);
  LACUNA_END_TRY(b.bound(blocks(700, 50), 0));
  LACUNA_END_EXPECT(b.counters.keys_created == 1 && b.endpoint->keys().size() == 2);
  return {};
}

// After forget() no key stands for a part of the region, to the peer neither; the keys serve again.
std::string forgetting(Bench& b) {
  const std::uint32_t key = LACUNA_END_TRY(b.bound(blocks(20, 50), 0)).key();
  {
    const auto out = LACUNA_END_TRY(b.bound(blocks(20, 50), 8));
    LACUNA_END_EXPECT(b.endpoint->forget(b.region, kPatience).error().code == base::Code::limit);
  }
  LACUNA_END_TRY(b.endpoint->forget(b.region, kPatience));
  const nic::Sge stream{0, 200, key};
  LACUNA_END_TRY(b.endpoint->qp().post_send({.wr_id = ~std::uint64_t{0}, .sg_list = {&stream, 1}}));
  LACUNA_END_EXPECT(b.endpoint->qp().fault() != nullptr && b.endpoint->qp().fault()->message.find("loc_prot_err") != std::string::npos);
  return {};
}

// A region at the same place is not the region that was there before.
std::string successor(Bench& b) {
  LACUNA_END_TRY(b.bound(blocks(20, 50), 0));
  LACUNA_END_TRY(b.endpoint->forget(b.region, kPatience));
  b.region = nic::Region();
  b.region = LACUNA_END_TRY(b.context->register_memory(b.buffer.bytes(), {}));
  LACUNA_END_TRY(b.bound(blocks(20, 50), 0));
  LACUNA_END_EXPECT(b.counters.keys_bound == 1 && b.counters.keys_created == 0);
  return {};
}

TEST(KeyCache, SharesTheNicsKeysTwoThreads) { EXPECT_EQ(in_two_threads(sharing), ""); }
TEST(KeyCache, FindsWhatIsBoundTwoThreads) { EXPECT_EQ(run(hits, 8), ""); }
TEST(KeyCache, BindsTheLeastRecentlyUsedAnewTwoThreads) { EXPECT_EQ(run(eviction, 3), ""); }
TEST(KeyCache, ReplacesWhatIsTooSmallTwoThreads) { EXPECT_EQ(run(growth, 2), ""); }
TEST(KeyCache, ForgetsARegionTwoThreads) { EXPECT_EQ(run(forgetting, 8), ""); }
TEST(KeyCache, KnowsARegionFromItsSuccessorTwoThreads) { EXPECT_EQ(run(successor, 8), ""); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
