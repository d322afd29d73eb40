// The NIC on which posting is measured carries out what was posted: every method moves small caches rightly on it, so
// that its requests are no pretence.
#include <gtest/gtest.h>

#include "tests/support/random_layout.hpp"
#include "tools/handover/cache.hpp"
#include "tools/handover/posting.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using namespace handover;
using support::Random;
using support::value;

TEST(PostingNic, CarriesOutWhatWasPosted) {
  Random random(11);
  for (const method::Method& how : method::methods()) {
    if (!how.one_sided() || !sender_posts(how)) continue;
    SCOPED_TRACE(how.name);
    for (int i = 0; i < 20; ++i) {
      const Contents what{.layers = random.between(1, 2),
                          .kv = 2,
                          .tokens = random.between(1, 400),
                          .heads = random.between(1, 4),
                          .head_bytes = 8 * random.between(1, 12)};
      const Cache src = paged_cache(what, random.between(1, 9), Order::tokens_first, Kv::pools, 2, random.next());
      const Cache dst =
          paged_cache(what, random.between(1, 9), Order::heads_first, random.one_in(2) ? Kv::pages : Kv::tokens, 2, random.next());
      std::vector<std::byte> from(static_cast<std::size_t>(src.memory_bytes));
      std::vector<std::byte> to(static_cast<std::size_t>(dst.memory_bytes));
      fill(src, from, 0);
      fill_gaps(to);
      const method::Transfer transfer{value(src.layout()), value(dst.layout()), method::Notify::flag};
      PostingBench bench = value(PostingBench::create(how, transfer, from, to));
      value(bench.post());
      const Placed placed{&dst, 0};
      ASSERT_NE(check({&placed, 1}, to), "") << "it moves only when it is told to";
      bench.moves(true);
      value(bench.post());
      ASSERT_TRUE(bench.land().has_value());
      ASSERT_EQ(check({&placed, 1}, to), "");
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
