// Puts and gets: what they move, what they refuse, and that the rank which is reached makes no call for them but
// progress.
#include <cstring>

#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "Access.PutsAndGets");
LACUNA_TIER(gate, "*AccessBy.*/pack");
LACUNA_TIER(gate, "*AccessBy.*/pack_pipelined");
LACUNA_TIER(gate, "*AccessBy.*/gather_write");
LACUNA_TIER(gate, "*AccessBy.*/scatter_read");
LACUNA_TIER(gate, "*AccessBy.*/sgrs");
LACUNA_TIER(gate, "*AccessBy.*/umr_send");
LACUNA_TIER(gate, "*AccessBy.*/umr_write");
LACUNA_TIER(gate, "*AccessBy.*/umr_chunked");

// It polls a word that its own progress thread writes by a copy's plain store: memory that is put to has no other way
// to be told.
LACUNA_LEFT_OUT(thread, "Access.NeedsNoCallWithAProgressThread");
LACUNA_TIER(test, "Access.*");
LACUNA_TIER(test, "*AccessBy.*");

using layout::Layout;
using protocol::Communicator;
using protocol::Exposed;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::hvector(count, 1, stride, bytes(length)));
}

constexpr std::int64_t kExposed = 4 << 20;

struct Pair {
  Layout own, theirs;
  std::int64_t offset;
};
std::vector<Pair> pairs() {
  std::vector<Pair> made{{bytes(8), bytes(8), 0},
                         {bytes(0), bytes(0), 100},
                         {bytes(8), vector(8, 1, 5), kExposed - 40},
                         {vector(300, 10, 33), bytes(3000), 1000},
                         {bytes(9000), vector(900, 10, 33), 77},
                         {vector(5000, 40, 100), vector(2000, 100, 150), 12345},
                         {bytes(1'500'000), bytes(1'500'000), 1},
                         {vector(1, 5, 5), support::value(Layout::hvector(5, 1, -7, bytes(1))), 500}};
  return made;
}

// A get that is given up ends all that is under way with its peer, which may send what was asked for still.
std::string gives_up(Communicator& ranks) {
  std::vector<std::byte> memory(4096);
  const Layout token = bytes(sizeof(Exposed));
  Exposed there;
  if (ranks.rank() == 1) {
    there = LACUNA_END_TRY(ranks.expose(memory.data(), std::ssize(memory)));
    LACUNA_END_TRY(ranks.send(&there, token, 0, 1));
    LACUNA_END_EXPECT(!ranks.recv(&there, token, 0, 2));  // rank 0 is lost
    return {};
  }
  LACUNA_END_TRY(ranks.recv(&there, token, 1, 1));
  ranks.give_up(LACUNA_END_TRY(ranks.get(memory.data(), bytes(8), there, 0, bytes(8))));
  LACUNA_END_EXPECT(!ranks.irecv(memory.data(), bytes(8), 1, 3));
  return {};
}

// Rank 1 exposes; rank 0 puts, gets, and looks at everything around. Neither says anything else meanwhile.
std::string moves(Communicator& ranks) {
  std::vector<std::byte> memory(kExposed);
  const Layout token = bytes(sizeof(Exposed));
  Exposed there;
  if (ranks.rank() == 1) {
    there = LACUNA_END_TRY(ranks.expose(memory.data(), kExposed));
    LACUNA_END_TRY(ranks.send(&there, token, 0, 1));
    LACUNA_END_TRY(ranks.recv(&there, token, 0, 2));  // it is over
    LACUNA_END_TRY(ranks.withdraw(there));
    return {};
  }
  LACUNA_END_TRY(ranks.recv(&there, token, 1, 1));
  std::vector<std::byte> image(kExposed);  // of the other's memory
  std::vector<std::byte> own(4 << 20);
  std::uint64_t seed = 0;
  for (const Pair& pair : pairs()) {
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::byte>((i + ++seed % 7) * 0x9e3779b97f4a7c15 >> 56);
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.put(own.data(), pair.own, there, pair.offset, pair.theirs))));
    if (pair.own.size() > 0) LACUNA_END_TRY(ranks.context().transpack(pair.own, own.data(), pair.theirs, image.data() + pair.offset));
    std::vector<std::byte> seen(kExposed);
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.get(seen.data(), bytes(kExposed), there, 0, bytes(kExposed)))));
    LACUNA_END_EXPECT(seen == image);
    std::vector<std::byte> back(own.size(), std::byte{9});
    std::vector<std::byte> wanted = back;
    if (pair.own.size() > 0) LACUNA_END_TRY(ranks.context().transpack(pair.theirs, image.data() + pair.offset, pair.own, wanted.data()));
    const protocol::Status status =
        LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.get(back.data(), pair.own, there, pair.offset, pair.theirs))));
    LACUNA_END_EXPECT(back == wanted && status.bytes == pair.own.size() && status.tag == 0);
  }
  // Many at once, both ways, with messages in between that wildcards take.
  std::vector<protocol::Request*> all;
  std::vector<std::uint64_t> out(500), in(500);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = i * i;
    all.push_back(LACUNA_END_TRY(ranks.put(&out[i], bytes(8), there, static_cast<std::int64_t>(16 * i), bytes(8))));
  }
  LACUNA_END_TRY(ranks.wait_all(all));
  all.clear();
  for (std::size_t i = 0; i < out.size(); ++i)
    all.push_back(LACUNA_END_TRY(ranks.get(&in[i], bytes(8), there, static_cast<std::int64_t>(16 * i), bytes(8))));
  LACUNA_END_TRY(ranks.wait_all(all));
  LACUNA_END_EXPECT(in == out);
  LACUNA_END_TRY(ranks.send(&there, token, 1, 2));
  return {};
}

TEST(Access, PutsAndGets) {
  EXPECT_EQ(in_ranks({}, moves), "");
  EXPECT_EQ(in_ranks({.processes = true}, moves), "");
  EXPECT_EQ(in_ranks({.options = {.unexpected_bytes = 4096}}, moves), "");
  EXPECT_EQ(in_model(2, {}, moves), "");
  Setting queues;
  queues.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(queues, moves), "");
}

class AccessBy : public testing::TestWithParam<std::string_view> {};
TEST_P(AccessBy, PutsAndGets) {
  Setting setting;
  setting.options.force.method = support::value(method::find(GetParam()));
  EXPECT_EQ(in_ranks(setting, moves), "");
}
std::vector<std::string_view> names_of_methods() {
  std::vector<std::string_view> names;
  for (const method::Method& method : method::methods()) names.push_back(method.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(EveryMethod, AccessBy, testing::ValuesIn(names_of_methods()),
                         [](const auto& info) { return std::string(info.param); });

TEST(Access, IsCheckedAtBothEnds) {
  const auto ask = [](Communicator& ranks) -> std::string {
    std::vector<std::byte> memory(1000);
    const auto code = [](const auto& result) { return result ? base::Code::io : result.error().code; };
    LACUNA_END_EXPECT(code(ranks.expose(memory.data(), 0)) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.expose(nullptr, 8)) == base::Code::invalid_argument);
    Exposed there = LACUNA_END_TRY(ranks.expose(memory.data(), 1000));
    const Layout token = bytes(sizeof there);
    const int peer = 1 - ranks.rank();
    Exposed theirs;
    LACUNA_END_TRY(ranks.send(&there, token, peer, 1));
    LACUNA_END_TRY(ranks.recv(&theirs, token, peer, 1));
    LACUNA_END_EXPECT(theirs.rank == peer && theirs.bytes == 1000);
    LACUNA_END_EXPECT(code(ranks.put(memory.data(), bytes(8), theirs, 993, bytes(8))) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.put(memory.data(), bytes(8), theirs, -1, bytes(8))) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.get(memory.data(), bytes(8), theirs, INT64_MAX, bytes(8))) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.get(memory.data(), bytes(8), theirs, 0, bytes(9))) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.put(memory.data(), bytes(8), theirs, 0, vector(2, 4, 0))) == base::Code::invalid_argument);
    LACUNA_END_EXPECT(code(ranks.withdraw(theirs)) == base::Code::invalid_argument);
    // A token that claims more than there is: the other end refuses.
    Exposed longer = theirs;
    longer.bytes = 1 << 20;
    Exposed other = longer;
    other.number += 99;
    std::vector<std::byte> big(100'000);
    for (const Exposed& wrong : {longer, other}) {
      for (const std::int64_t n : {8, 3000, 100'000}) {
        LACUNA_END_EXPECT(code(ranks.wait(LACUNA_END_TRY(ranks.put(big.data(), bytes(n), wrong, 995, bytes(n))))) ==
                          base::Code::invalid_argument);
        LACUNA_END_EXPECT(code(ranks.wait(LACUNA_END_TRY(ranks.get(big.data(), bytes(n), wrong, 995, bytes(n))))) ==
                          base::Code::invalid_argument);
      }
    }
    for (const std::byte byte : memory) LACUNA_END_EXPECT(byte == std::byte{});
    // One's own memory.
    std::uint32_t word = 7;
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.put(&word, bytes(4), there, 8, vector(4, 1, 2)))));
    LACUNA_END_EXPECT(memory[8] == std::byte{7});
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.get(&word, bytes(4), there, 0, bytes(4)))));
    LACUNA_END_EXPECT(word == 0);
    Exposed more = there;
    more.bytes = 1 << 20;
    LACUNA_END_EXPECT(code(ranks.put(&word, bytes(4), more, 998, bytes(4))) == base::Code::invalid_argument);
    // A put among the exposed bytes
    for (int i = 0; i < 8; ++i) memory[static_cast<std::size_t>(i)] = static_cast<std::byte>(i);
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.put(memory.data(), bytes(8), there, 3, bytes(8)))));
    for (int i = 0; i < 8; ++i) LACUNA_END_EXPECT(memory[static_cast<std::size_t>(3 + i)] == static_cast<std::byte>(i));
    LACUNA_END_TRY(ranks.withdraw(there));
    LACUNA_END_EXPECT(code(ranks.put(&word, bytes(4), there, 0, bytes(4))) == base::Code::invalid_argument);
    return {};
  };
  EXPECT_EQ(in_ranks({}, ask), "");
  Setting queues;
  queues.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(queues, ask), "");
}

TEST(Access, OfAGetThatIsGivenUpLosesThePeer) { EXPECT_EQ(in_model(2, {}, gives_up), ""); }

// While one rank computes, the other reaches its memory: with a progress thread.
TEST(Access, NeedsNoCallWithAProgressThread) {
  const auto talk = [](Communicator& ranks) -> std::string {
    static constexpr std::int64_t kWords = 100'000;
    std::vector<std::int64_t> memory(kWords, ranks.rank());
    const Layout token = bytes(sizeof(Exposed));
    Exposed there;
    if (ranks.rank() == 1) {
      there = LACUNA_END_TRY(ranks.expose(memory.data(), 8 * kWords));
      LACUNA_END_TRY(ranks.send(&there, token, 0, 1));
      const auto* last = reinterpret_cast<const std::uint64_t*>(&memory.back());
      const auto came = [&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) == 5; };
      if (std::string wrong = await("the other's put", came); !wrong.empty()) return wrong;
      LACUNA_END_TRY(ranks.withdraw(there));
      return {};
    }
    LACUNA_END_TRY(ranks.recv(&there, token, 1, 1));
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.get(memory.data(), bytes(8 * kWords), there, 0, bytes(8 * kWords)))));
    LACUNA_END_EXPECT(memory.front() == 1 && memory.back() == 1);
    memory.back() = 5;
    LACUNA_END_TRY(ranks.wait(LACUNA_END_TRY(ranks.put(&memory.back(), bytes(8), there, 8 * (kWords - 1), bytes(8)))));
    return {};
  };
  EXPECT_EQ(in_ranks({.processes = true, .options = {.progress_thread = true}}, talk), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
