// Messages that lie in their sender's registered memory until they are read.
#include "lacuna/protocol/rendezvous/rget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "tests/nic/rig.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "*RgetOnPath.*");
LACUNA_TIER(test, "Rget.*");

using layout::Layout;
using protocol::Rget;
using support::Random;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::hvector(count, 1, stride, bytes(length)));
}

// Memory with a byte in each place that depends on the place and the seed.
std::vector<std::byte> pattern(std::int64_t size, std::uint64_t seed) {
  std::vector<std::byte> memory(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>((i + 1) * (seed + 1) * 0x9e3779b97f4a7c15 >> 56);
  return memory;
}

struct Message {
  Layout from, to;
  std::int64_t capacity;
};

// A layout's runs lie from its true lower bound on.
std::byte* origin(std::vector<std::byte>& memory, const Layout& layout) { return memory.data() - layout.true_lower_bound(); }

std::vector<std::byte> source(const Message& message, std::uint64_t seed) { return pattern(message.from.true_extent(), seed); }
std::vector<std::byte> blank(const Message& message) {
  return std::vector<std::byte>(static_cast<std::size_t>(message.to.true_extent()), std::byte{9});
}
// What the receiver must hold: the gaps as they were.
std::vector<std::byte> image(const Message& message, std::uint64_t seed) {
  std::vector<std::byte> sent = source(message, seed), target = blank(message);
  std::vector<std::byte> packed(static_cast<std::size_t>(message.from.size()));
  copy::reference::pack(message.from, origin(sent, message.from), 0, message.from.size(), packed.data());
  copy::reference::unpack(message.to, origin(target, message.to), 0, std::min(message.from.size(), message.capacity), packed.data());
  return target;
}

std::vector<Message> messages() {
  std::vector<Message> all;
  for (const std::int64_t size : {1L, 61L, 65'535L, 65'536L, 65'537L, 131'072L, 1'000'000L, 5'000'000L})
    all.push_back({bytes(size), bytes(size), size});
  all.push_back({vector(30'000, 40, 100), vector(8'000, 150, 151), 1'200'000});
  all.push_back({vector(30'000, 40, 100), vector(8'000, 150, 151), 700'001});  // a receive that is too short
  all.push_back({bytes(200'000), vector(2'000, 100, 333), 100});
  Random random(7);
  for (int i = 0; i < 40; ++i) {
    const Layout to = support::random_receive_layout(random).layout;
    if (to.size() == 0) continue;
    const Layout from = support::random_layout_of_size(random, to.size()).layout;
    all.push_back({from, to, random.one_in(4) ? random.between(1, to.size()) : to.size()});
  }
  return all;
}

struct Ends {
  std::unique_ptr<Rget> rget;
  static base::Result<Ends> make(nic::Path path, nic::Bootstrap& bootstrap) {
    Ends made{LACUNA_TRY(Rget::create(LACUNA_TRY(open_tested()), path, 3))};
    LACUNA_TRY(made.rget->connect(1, bootstrap, kPatience));  // one of several
    return made;
  }
};

// Steps until it is done.
std::string finish(Rget::In& in) {
  base::Result<bool> done = false;
  const auto over = [&] { return !(done = in.step()) || *done; };
  if (std::string wrong = await("a message to be read", over); !wrong.empty()) return wrong;
  return done ? "" : done.error().text();
}

// Until the messages of this end are read.
std::string all_taken(Rget& rget) {
  const auto none = [&] {
    if (rget.waiting() > 0) rget.progress();
    return rget.waiting() == 0;
  };
  return await("messages to be taken", none);
}

class RgetOnPath : public EveryPath {};

std::string moves(nic::Path path, int rank, nic::Bootstrap& bootstrap, bool packs_first) {
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  std::uint64_t seed = 0;
  for (const Message& message : messages()) {
    const bool sends = (++seed + static_cast<std::uint64_t>(rank)) % 2 == 0;
    if (sends) {
      std::vector<std::byte> memory = source(message, seed);
      auto out = LACUNA_END_TRY(ends.rget->offer(1, message.from.size()));
      if (!packs_first) LACUNA_END_TRY(swap(bootstrap, out->ticket()));
      LACUNA_END_TRY(out->pack(message.from, origin(memory, message.from)));
      std::ranges::fill(memory, std::byte{});  // it may be used again
      if (packs_first) LACUNA_END_TRY(swap(bootstrap, out->ticket()));
      out.reset();
    } else {
      const Rget::Ticket ticket = LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{}));
      std::vector<std::byte> memory = blank(message);
      const auto in =
          LACUNA_END_TRY(ends.rget->accept(1, ticket, message.from.size(), message.to, origin(memory, message.to), message.capacity));
      if (std::string wrong = finish(*in); !wrong.empty()) return fmt::format("message {}: {}", seed, wrong);
      if (memory != image(message, seed)) return fmt::format("message {} is wrong", seed);
    }
    LACUNA_END_TRY(barrier(bootstrap));  // the sender is in nothing of ours while the receiver reads
  }
  if (std::string wrong = all_taken(*ends.rget); !wrong.empty()) return wrong;
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}
std::string packs_first(nic::Path path, int rank, nic::Bootstrap& bootstrap) { return moves(path, rank, bootstrap, true); }
std::string reads_while_packing(nic::Path path, int rank, nic::Bootstrap& bootstrap) { return moves(path, rank, bootstrap, false); }

// More than there may be; what is taken makes room, and so does what was never packed.
std::string bounds(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  const Layout one = bytes(5000);
  for (int round = 0; round < 3; ++round) {
    std::vector<Rget::Ticket> tickets(64);
    if (rank == 0) {
      for (int i = 0; i < 70; ++i) LACUNA_END_TRY(ends.rget->offer(1, 100));  // gone again
      for (std::size_t i = 0; i < tickets.size(); ++i) {
        const std::vector<std::byte> memory = pattern(5000, i);
        const auto out = LACUNA_END_TRY(ends.rget->offer(1, one.size()));
        LACUNA_END_TRY(out->pack(one, memory.data()));
        tickets[i] = out->ticket();
      }
      const auto more = ends.rget->offer(1, 1);
      LACUNA_END_EXPECT(!more && more.error().code == base::Code::limit);
      const auto large = ends.rget->offer(1, Rget::kRoom + 1);
      LACUNA_END_EXPECT(!large && large.error().code == base::Code::limit);
    }
    for (Rget::Ticket& ticket : tickets) ticket = LACUNA_END_TRY(swap(bootstrap, ticket));
    if (rank == 1) {
      for (std::size_t i = tickets.size(); i-- > 0;) {  // in any order
        std::vector<std::byte> memory(5000);
        const auto in = LACUNA_END_TRY(ends.rget->accept(1, tickets[i], 5000, one, memory.data(), 5000));
        if (round == 1) LACUNA_END_TRY(in->step());
        if (round == 1 && i % 2 == 0) {  // given up half way, and begun again
          const auto again = LACUNA_END_TRY(ends.rget->accept(1, tickets[i], 5000, one, memory.data(), 5000));
          if (std::string wrong = finish(*again); !wrong.empty()) return wrong;
        } else if (std::string wrong = finish(*in); !wrong.empty()) {
          return wrong;
        }
        LACUNA_END_EXPECT(memory == pattern(5000, i));
      }
    }
    LACUNA_END_TRY(barrier(bootstrap));
    if (std::string wrong = all_taken(*ends.rget); !wrong.empty()) return wrong;
    LACUNA_END_TRY(barrier(bootstrap));
  }
  return {};
}

// --- peers that break the rules --------------------------------------------------------------------------------------

struct Introduction {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t works = 0;
};
constexpr std::uint64_t kHelloAt = 128 * sizeof(std::uint64_t), kHello = 0x6c61'6375'6e61'2121;

// The other end, by hand.
struct ByHand {
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<nic::CompletionQueue> queue;
  std::unique_ptr<nic::QueuePair> qp;
  nic::RegisteredBuffer memory;
  Introduction theirs;

  static base::Result<ByHand> make(nic::Path path, nic::Bootstrap& bootstrap) {
    ByHand hand;
    hand.context = LACUNA_TRY(open_tested());
    hand.queue = LACUNA_TRY(hand.context->create_completion_queue(256));
    hand.qp = LACUNA_TRY(hand.context->connect(bootstrap, *hand.queue, {path, 64, 1}));
    hand.memory = LACUNA_TRY(nic::RegisteredBuffer::create(*hand.context, 1 << 20));
    const Introduction mine{hand.memory.region.addr(), hand.memory.region.rkey(), 0};
    hand.theirs = LACUNA_TRY(swap(bootstrap, mine));
    LACUNA_TRY(hand.write(kHelloAt, kHello));
    const std::int64_t deadline = base::now_ns() + kPatience;
    const auto* hello = reinterpret_cast<const std::uint64_t*>(hand.memory.buffer.data() + kHelloAt);
    while (hand.context->load_flag(hello) != kHello) {
      hand.context->poll(*hand.queue, {});
      LACUNA_TRY(hand.context->wait(deadline));
    }
    LACUNA_TRY(swap(bootstrap, Introduction{mine.addr, mine.rkey, 1}));
    return hand;
  }
  base::Result<void> write(std::uint64_t offset, std::uint64_t word) {
    std::byte* const at = memory.buffer.data() + (1 << 19);
    std::memcpy(at, &word, sizeof word);
    const nic::Sge sge = memory.sge(1 << 19, sizeof word);
    LACUNA_TRY(
        qp->post_send({.opcode = nic::Opcode::write, .sg_list = {&sge, 1}, .remote_addr = theirs.addr + offset, .rkey = theirs.rkey}));
    nic::Completion done;
    const std::int64_t deadline = context->now() + kPatience;
    while (context->poll(*queue, {&done, 1}) == 0) LACUNA_TRY(context->wait(deadline));
    if (done.status != nic::Status::success) return base::fail(base::Code::transfer, std::string(nic::status_name(done.status)));
    return {};
  }
};

// Until it says what is wrong.
base::Result<base::Code> ends_with(Rget::In& in) {
  base::Result<bool> done = false;
  const auto over = [&] { return !(done = in.step()) || *done; };
  const std::string wrong = await("an error", over);
  if (!wrong.empty()) return base::fail(base::Code::timeout, wrong);
  if (done) return base::fail(base::Code::invalid_argument, "it was received");
  return done.error().code;
}

std::string too_many_parts(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  if (rank == 0) {
    ByHand hand = LACUNA_END_TRY(ByHand::make(path, bootstrap));
    LACUNA_END_TRY(hand.write(5 * sizeof(std::uint64_t), std::uint64_t{5} << 32 | 3));
    LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{hand.memory.region.addr(), hand.memory.region.rkey(), 5}));
    LACUNA_END_TRY(barrier(bootstrap));
    return {};
  }
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  const Rget::Ticket ticket = LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{}));
  std::vector<std::byte> memory(131'072);
  for (const auto& [wrong, size] :
       {std::pair{Rget::Ticket{ticket.addr, ticket.rkey, 0}, 131'072L}, std::pair{ticket, 0L}, std::pair{ticket, -5L}}) {
    const auto refused = ends.rget->accept(1, wrong, size, bytes(131'072), memory.data(), 131'072);
    LACUNA_END_EXPECT(!refused && refused.error().code == base::Code::malformed);
  }
  const auto in = LACUNA_END_TRY(ends.rget->accept(1, ticket, 131'072, bytes(131'072), memory.data(), 131'072));
  LACUNA_END_EXPECT(LACUNA_END_TRY(ends_with(*in)) == base::Code::malformed);
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// Memory that is not there, or not for us: an error of the message, and of those after it; nothing else is written.
std::string false_tickets(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  if (rank == 0) {
    ByHand hand = LACUNA_END_TRY(ByHand::make(path, bootstrap));
    LACUNA_END_TRY(hand.write(7 * sizeof(std::uint64_t), std::uint64_t{7} << 32 | 1));
    LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{hand.memory.region.addr(), hand.memory.region.rkey() + 77, 7}));
    const auto faulty = [&] {
      if (hand.qp->fault() == nullptr) hand.context->poll(*hand.queue, {});
      return hand.qp->fault() != nullptr;
    };
    if (std::string wrong = await("the peer's read of what there is not", faulty); !wrong.empty()) return wrong;
    LACUNA_END_TRY(barrier(bootstrap));
    return {};
  }
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  const Rget::Ticket ticket = LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{}));
  std::vector<std::byte> memory(5000, std::byte{9});
  const auto in = LACUNA_END_TRY(ends.rget->accept(1, ticket, 5000, bytes(5000), memory.data(), 5000));
  LACUNA_END_TRY(ends_with(*in));
  LACUNA_END_EXPECT(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{9}; }));
  LACUNA_END_EXPECT(!ends.rget->reaches(1));
  LACUNA_END_EXPECT(!ends.rget->offer(1, 100));
  LACUNA_END_EXPECT(!ends.rget->accept(1, ticket, 5000, bytes(5000), memory.data(), 5000));
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// Random words all over the board, and tickets: whatever comes of it, memory beside the receives stays as it was, and
// everything ends.
std::string fuzz(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  constexpr int kRounds = 200;
  Random random(static_cast<std::uint64_t>(11));
  if (rank == 0) {
    ByHand hand = LACUNA_END_TRY(ByHand::make(path, bootstrap));
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t slot = random.next() % 128;
      const std::uint64_t number = random.next() % 200;
      (void)hand.write(slot * sizeof(std::uint64_t), number << 32 | static_cast<std::uint64_t>(random.scaled(1 << 20)));
      const Rget::Ticket ticket{hand.memory.region.addr() + static_cast<std::uint64_t>(random.below(1 << 18)), hand.memory.region.rkey(),
                                static_cast<std::uint32_t>(random.one_in(3) ? random.next() % 200 : number)};
      LACUNA_END_TRY(swap(bootstrap, ticket));
    }
    LACUNA_END_TRY(barrier(bootstrap));
    return {};
  }
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  std::vector<std::byte> memory(300'000 + 64, std::byte{9});
  for (int round = 0; round < kRounds; ++round) {
    const Rget::Ticket ticket = LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{}));
    const std::int64_t size = random.between(1, 300'000);
    const auto in = ends.rget->accept(1, ticket, size, bytes(size), memory.data(), size);
    if (!in) continue;
    for (int i = 0; i < 20; ++i) {
      const base::Result<bool> done = (*in)->step();
      if (!done || *done) break;
    }
    auto out = ends.rget->offer(1, size);
    if (out) LACUNA_END_EXPECT((*out)->pack(bytes(size), memory.data()).has_value() || !ends.rget->reaches(1));
  }
  for (std::size_t i = 300'000; i < memory.size(); ++i) LACUNA_END_EXPECT(memory[i] == std::byte{9});
  LACUNA_END_TRY(barrier(bootstrap));
  return {};
}

// A sender that dies while its message is awaited.
std::string dies(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  const Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  if (rank == 1) {
    const auto out = LACUNA_END_TRY(ends.rget->offer(1, 200'000));
    LACUNA_END_TRY(swap(bootstrap, out->ticket()));
    std::raise(SIGKILL);
  }
  const Rget::Ticket ticket = LACUNA_END_TRY(swap(bootstrap, Rget::Ticket{}));
  std::vector<std::byte> memory(200'000);
  const auto in = ends.rget->accept(1, ticket, 200'000, bytes(200'000), memory.data(), 200'000);
  if (in) LACUNA_END_TRY(ends_with(**in));
  LACUNA_END_EXPECT(in || in.error().code == base::Code::peer_lost);  // it may be known already
  LACUNA_END_EXPECT(!ends.rget->reaches(1));
  return {};
}

// A peer that goes away with messages that it has not read: no peer reads them any more, so they wait no longer.
std::string goes_without_reading(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  Ends ends = LACUNA_END_TRY(Ends::make(path, bootstrap));
  const std::vector<std::byte> memory = pattern(5000, 1);
  if (rank == 0) LACUNA_END_TRY(LACUNA_END_TRY(ends.rget->offer(1, 5000))->pack(bytes(5000), memory.data()));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) ends.rget.reset();
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 1) return {};
  LACUNA_END_EXPECT(ends.rget->waiting() == 1);
  const auto lost = [&] {
    const auto out = ends.rget->offer(1, 5000);
    if (out) (void)(*out)->pack(bytes(5000), memory.data());
    return !ends.rget->reaches(1);
  };
  if (std::string wrong = await("a peer that went to be lost", lost); !wrong.empty()) return wrong;
  ends.rget->progress();
  LACUNA_END_EXPECT(ends.rget->waiting() == 0);
  LACUNA_END_EXPECT(!ends.rget->offer(1, 100));
  return {};
}

// A peer that goes away between the two halves of connecting.
std::string goes(nic::Path path, int rank, nic::Bootstrap& bootstrap) {
  if (rank == 1) {
    const auto context = LACUNA_END_TRY(open_tested());
    const auto queue = LACUNA_END_TRY(context->create_completion_queue(64));
    const auto qp = LACUNA_END_TRY(context->connect(bootstrap, *queue, {path, 64, 1}));
    return {};
  }
  const auto rget = LACUNA_END_TRY(Rget::create(LACUNA_END_TRY(open_tested()), path, 3));
  LACUNA_END_EXPECT(!rget->connect(1, bootstrap, kPatience));
  LACUNA_END_EXPECT(!rget->reaches(1));
  LACUNA_END_EXPECT(!rget->offer(1, 100));
  return {};
}

LACUNA_ON_EVERY_PATH(RgetOnPath, packs_first)
LACUNA_ON_EVERY_PATH(RgetOnPath, reads_while_packing)
LACUNA_ON_EVERY_PATH(RgetOnPath, bounds)
LACUNA_ON_EVERY_PATH(RgetOnPath, too_many_parts)
LACUNA_ON_EVERY_PATH(RgetOnPath, false_tickets)
LACUNA_ON_EVERY_PATH(RgetOnPath, fuzz)
LACUNA_ON_EVERY_PATH(RgetOnPath, goes)
LACUNA_ON_EVERY_PATH(RgetOnPath, goes_without_reading)
TEST_P(RgetOnPath, diesTwoProcesses) {
  LACUNA_NEEDS_PATH(GetParam());
  EXPECT_EQ(in_two_processes([&](int rank, nic::Bootstrap& b) { return dies(GetParam(), rank, b); }, SIGKILL), "");
}

// Not by slots: they need the target's CPU.
std::vector<nic::Path> passive_paths() {
  std::vector<nic::Path> paths = tested_paths();
  std::erase(paths, nic::Path::slots);
  return paths;
}
INSTANTIATE_TEST_SUITE_P(, RgetOnPath, testing::ValuesIn(passive_paths()), path_test_name);

TEST(Rget, NeedsAPathThatNeedsNoPeer) {
  if (tested_nic() != "local") GTEST_SKIP() << "every path of " << tested_nic() << " does";
  auto context = open_tested();
  ASSERT_TRUE(context) << context.error().text();
  const auto made = Rget::create(std::move(*context), nic::Path::slots, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, base::Code::unsupported);
}

TEST(Rget, SaysHowManyPeersThereMayBe) {
  auto context = open_tested();
  ASSERT_TRUE(context) << context.error().text();
  const auto made = Rget::create(std::move(*context), tested_paths().front(), 1 << 24);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, base::Code::limit);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
