// The cache of registrations under attack, on a NIC that pins. Others unmap, map anew at the same addresses, move,
// discard and fork without pause; the thread that has a stretch of memory writes into it and has it moved by the NIC,
// out of it or into it. Bytes of pages that are not there any more are stale.
//
// The program's part of the bargain is kept: no thread takes memory away while it is being moved. LACUNA_ATTACK_CYCLES
// says how many transfers there are.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "tests/protocol/registration/registrations_rig.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "RegistrationAttack.*");
LACUNA_TIER(gate, "RegistrationAttack.NotOneStaleByte");

using protocol::Registrations;

constexpr std::size_t kSlotPages = 4;
constexpr std::size_t kSlotBytes = kSlotPages * kPage;
// Where nobody else maps anything: what is unmapped for a moment stays ours.
constexpr std::uint64_t kWhere = 0x2000'0000'0000;

enum class Fate : std::uint8_t { unmapped, mapped_over, moved, discarded, kept };
constexpr std::array kFates{Fate::unmapped, Fate::unmapped, Fate::unmapped,  Fate::mapped_over, Fate::mapped_over,
                            Fate::moved,    Fate::moved,    Fate::discarded, Fate::kept,        Fate::kept};

#if defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t kCycles = 3'000;
#else
constexpr std::int64_t kCycles = 10'000;
#endif
std::int64_t cycles() {
  const char* named = std::getenv("LACUNA_ATTACK_CYCLES");
  return named != nullptr ? std::atoll(named) : tests_a_device() ? 1'000 : kCycles;
}

// A stretch of memory. Whoever changes `state` from ready has it.
struct Slot {
  enum State : int { ready, busy, gone };
  std::byte* at = nullptr;
  std::atomic<int> state = ready;
  Fate fate{};
};

std::byte* map(std::byte* at, int flags) {
  void* got = mmap(at, kSlotBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
}

class Arena {
 public:
  Arena() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].at = map(reinterpret_cast<std::byte*>(kWhere) + 2 * i * kSlotBytes, MAP_FIXED_NOREPLACE);
      slots_[i].fate = kFates[i];
    }
  }
  ~Arena() {
    for (const Slot& slot : slots_) munmap(slot.at, kSlotBytes);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  [[nodiscard]] bool whole() const {
    return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.at != nullptr; });
  }
  /// A slot of that fate, or of any; nullptr if somebody has it.
  Slot* take(support::Random& random, std::optional<Fate> fate, int as) {
    Slot& slot = slots_[static_cast<std::size_t>(random.below(kFates.size()))];
    int free = Slot::ready;
    if ((fate && slot.fate != *fate) || !slot.state.compare_exchange_strong(free, as)) return nullptr;
    return &slot;
  }
  /// One that is being unmapped, or was.
  Slot* gone() {
    const auto found = std::ranges::find_if(slots_, [](const Slot& slot) { return slot.state.load() == Slot::gone; });
    return found != slots_.end() ? &*found : nullptr;
  }

 private:
  std::array<Slot, kFates.size()> slots_;
};

// Between the two, the addresses belong to somebody else before the event of the unmapping was read.
void unmap(Arena& arena, std::uint64_t seed, const std::atomic<bool>& over) {
  for (support::Random random(seed); !over.load();) {
    if (const Slot* slot = arena.take(random, Fate::unmapped, Slot::gone)) munmap(slot->at, kSlotBytes);
    if (random.one_in(4)) usleep(static_cast<unsigned>(random.below(200)));
  }
}
void map_again(Arena& arena, const std::atomic<bool>& over) {
  while (!over.load() || arena.gone() != nullptr) {
    Slot* slot = arena.gone();
    if (slot != nullptr && map(slot->at, MAP_FIXED_NOREPLACE) == slot->at) slot->state.store(Slot::ready);
    if (slot == nullptr) sched_yield();
  }
}

void spoil(Arena& arena, std::uint64_t seed, const std::atomic<bool>& over) {
  for (support::Random random(seed); !over.load();) {
    constexpr std::array kMine{Fate::mapped_over, Fate::moved, Fate::discarded};
    if (Slot* slot = arena.take(random, kMine.at(static_cast<std::size_t>(random.below(kMine.size()))), Slot::busy)) {
      if (slot->fate == Fate::mapped_over) map(slot->at, MAP_FIXED);
      if (slot->fate == Fate::discarded && random.one_in(8)) madvise(slot->at, kSlotBytes, random.one_in(2) ? MADV_DONTNEED : MADV_FREE);
      if (slot->fate == Fate::moved) {
        if (random.one_in(2)) {  // others come here
          std::byte* fresh = map(nullptr, 0);
          static_cast<void>(mremap(fresh, kSlotBytes, kSlotBytes, MREMAP_MAYMOVE | MREMAP_FIXED, slot->at));
        } else {  // these go elsewhere
          std::byte* elsewhere = map(nullptr, 0);
          static_cast<void>(mremap(slot->at, kSlotBytes, kSlotBytes, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere));
          map(slot->at, MAP_FIXED);
          munmap(elsewhere, kSlotBytes);
        }
      }
      slot->state.store(Slot::ready);
    }
    if (random.one_in(4)) usleep(static_cast<unsigned>(random.below(200)));
  }
}

void fork_children(std::atomic<std::int64_t>& forks, const std::atomic<bool>& over) {
  while (!over.load()) {
    const pid_t child = fork();
    if (child == 0) _exit(0);  // its copies, and the events of its end, are its own
    int status = 0;
    waitpid(child, &status, 0);
    ++forks;
    usleep(3'000);
  }
}

// Two ends of a connection, both this thread's; at one of them, registrations.
struct Wire {
  struct End {
    std::unique_ptr<nic::Context> context;
    std::unique_ptr<nic::CompletionQueue> queue;
    std::unique_ptr<nic::QueuePair> qp;
  };
  End ours, theirs;
  nic::RegisteredBuffer far;

  static base::Result<Wire> make() {
    Wire wire;
    auto sockets = LACUNA_TRY(nic::UnixBootstrap::socket_pair());
    const auto open = [](End& end, base::Fd socket) -> base::Result<void> {
      nic::UnixBootstrap bootstrap(std::move(socket));
      end.context = LACUNA_TRY(open_pinning());
      end.queue = LACUNA_TRY(end.context->create_completion_queue(64));
      end.qp = LACUNA_TRY(end.context->connect(bootstrap, *end.queue, {nic::Path::wire, 16, 16}));
      return {};
    };
    base::Result<void> opened;
    std::thread other([&] { opened = open(wire.theirs, std::move(sockets.second)); });
    const base::Result<void> own = open(wire.ours, std::move(sockets.first));
    other.join();
    LACUNA_TRY(own);
    LACUNA_TRY(opened);
    wire.far = LACUNA_TRY(nic::RegisteredBuffer::create(*wire.theirs.context, kSlotBytes));
    return wire;
  }
  /// Writes bytes of one end into a region of the other.
  base::Result<void> write(End& from, const nic::Sge& what, std::uint64_t addr, std::uint32_t rkey) {
    LACUNA_TRY(from.qp->post_send({.opcode = nic::Opcode::write, .sg_list = {&what, 1}, .remote_addr = addr, .rkey = rkey}));
    End& other = &from == &ours ? theirs : ours;
    nic::Completion done;
    const std::int64_t deadline = from.context->now() + kPatience;
    while (from.context->poll(*from.queue, {&done, 1}) == 0) {
      nic::Completion none;
      other.context->poll(*other.queue, {&none, 1});
      LACUNA_TRY(from.context->wait(deadline));
    }
    if (done.status != nic::Status::success) return base::fail(base::Code::transfer, std::string(status_name(done.status)));
    return {};
  }
};

struct Outcome {
  std::int64_t stale = 0;
  std::int64_t transfers = 0;
  Registrations::Statistics statistics;
};

std::uint64_t* words(std::byte* at) { return reinterpret_cast<std::uint64_t*>(at); }

// Writes a number all over a part of a slot, and has it moved.
base::Result<void> transfer(Wire& wire, Registrations& cache, std::byte* at, std::size_t bytes, bool out, std::uint64_t number,
                            Outcome& outcome) {
  const std::size_t count = bytes / sizeof number;
  std::uint64_t* const source = out ? words(at) : words(wire.far.buffer.data());
  std::uint64_t* const sink = out ? words(wire.far.buffer.data()) : words(at);
  std::fill_n(source, count, number);
  sink[0] = sink[count - 1] = 0;
  const auto lease = LACUNA_TRY(cache.lease({at, bytes}, {.local_write = !out, .remote_write = !out, .remote_read = out, .relaxed = true}));
  const nic::Region& region = lease.region();
  const auto length = static_cast<std::uint32_t>(bytes);
  if (out) {
    LACUNA_TRY(wire.write(wire.ours, {reinterpret_cast<std::uint64_t>(at), length, region.lkey()}, wire.far.region.addr(),
                          wire.far.region.rkey()));
  } else {
    LACUNA_TRY(wire.write(wire.theirs, wire.far.sge(0, length), reinterpret_cast<std::uint64_t>(at), region.rkey()));
  }
  outcome.stale += std::count_if(sink, sink + count, [&](std::uint64_t word) { return word != number; }) > 0 ? 1 : 0;
  ++outcome.transfers;
  return {};
}

// At least so many transfers, and more until `enough` has happened: how often the threads meet is the machine's affair.
base::Result<Outcome> attack(std::int64_t transfers, bool look, const std::function<bool(const Outcome&)>& enough) {
  Arena arena;
  if (!arena.whole()) return base::fail(base::Code::out_of_memory, "the slots' addresses are taken");
  Wire wire = LACUNA_TRY(Wire::make());
  Registrations cache(*wire.ours.context, {.worth_ns = 0, .most = 12, .look = look});
  if (cache.mode() != Registrations::Mode::watched) return base::fail(base::Code::unsupported, cache.why());
  std::atomic<bool> over = false;
  std::atomic<std::int64_t> forks = 0;
  Outcome outcome;
  base::Result<void> result;
  {
    std::jthread mapper([&] { map_again(arena, over); });
    std::vector<std::jthread> vandals;
    vandals.emplace_back([&] { unmap(arena, 1, over); });
    vandals.emplace_back([&] { unmap(arena, 2, over); });
    vandals.emplace_back([&] { spoil(arena, 3, over); });
    vandals.emplace_back([&] { fork_children(forks, over); });
    support::Random random(4);
    const std::int64_t deadline = base::now_ns() + kPatience;
    const auto ends = [&] {
      if (outcome.transfers < transfers) return false;
      outcome.statistics = cache.statistics();
      return (forks.load() > 0 && enough(outcome)) || base::now_ns() > deadline;
    };
    for (std::uint64_t number = 1; result && !ends(); ++number) {
      Slot* slot = arena.take(random, {}, Slot::busy);
      if (slot == nullptr) continue;
      const auto page = static_cast<std::size_t>(random.below(kSlotPages));
      const auto count = static_cast<std::size_t>(random.between(1, static_cast<std::int64_t>(kSlotPages - page)));
      const bool whole = random.one_in(2);
      result = transfer(wire, cache, slot->at + (whole ? 0 : page * kPage), whole ? kSlotBytes : count * kPage, random.one_in(2), number,
                        outcome);
      slot->state.store(Slot::ready);
    }
    over = true;
  }
  LACUNA_TRY(result);
  outcome.statistics = cache.statistics();
  EXPECT_GT(forks.load(), 0);
  return outcome;
}

class RegistrationAttack : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "tsan knows nothing of mappings that it has not made, and does not see what a device does";
#endif
    if (auto opened = open_pinning(); !opened) GTEST_SKIP() << opened.error().text();
    if (auto watch = protocol::MemoryWatch::shared(); !watch) GTEST_SKIP() << watch.error().text();
  }
};

TEST_F(RegistrationAttack, NotOneStaleByte) {
  const std::int64_t often = cycles() / 50;
  const auto enough = [&](const Outcome& so_far) {
    return so_far.statistics.found > often && so_far.statistics.changed > often && so_far.statistics.evicted > 0;
  };
  const auto outcome = attack(cycles(), true, enough);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->stale, 0) << "of " << outcome->transfers;
  const auto& seen = outcome->statistics;
  EXPECT_TRUE(enough(*outcome)) << outcome->transfers << " transfers: " << seen.found << " found, " << seen.changed << " changed, "
                                << seen.evicted << " evicted";
  std::printf("    %lld transfers: %lld found registered, %lld changed, %lld evicted, %lld that nobody could watch\n",
              static_cast<long long>(outcome->transfers), static_cast<long long>(seen.found), static_cast<long long>(seen.changed),
              static_cast<long long>(seen.evicted), static_cast<long long>(seen.unwatched));
}

// What the test is worth: a cache that does not look is found out.
TEST_F(RegistrationAttack, FindsACacheThatDoesNotLook) {
  const auto enough = [](const Outcome& so_far) { return so_far.stale > 0; };
  const auto outcome = attack(std::min<std::int64_t>(cycles(), 2'000), false, enough);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_GT(outcome->stale, 0) << "of " << outcome->transfers;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
