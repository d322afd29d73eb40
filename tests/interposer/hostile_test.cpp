// What a peer may send in a message's place: descriptors that are none, that name what is not there, or that come
// twice. A receive of one ends with an error, with a message, or never; its program goes on, and nothing is written but
// where the receive says.
#include <gtest/gtest.h>

#include <sched.h>

#include <deque>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/fuzz.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;
using mpi::Descriptor;
using support::Random;

#if defined(__SANITIZE_THREAD__)
constexpr int kJobs = 5;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kJobs = 15;
#else
constexpr int kJobs = 60;
#endif
constexpr int kMessages = 6;  // of a job: a peer that was found to lie is not believed again
constexpr std::int64_t kBytes = std::int64_t{4} * kCount;

// One that holds.
Descriptor true_one(int local, const mpi::Elements& layout, const std::vector<int>& memory) {
  mpi::Job& job = *mpi::job;
  const auto* base = reinterpret_cast<const std::byte*>(memory.data());
  Descriptor made;
  const auto lock = job.enter();
  if (local < 0) {
    Descriptor::InterNode head;
    auto outgoing = job.transport->begin_outgoing(0, kBytes, 3000, protocol::Behind::always, head);
    if (outgoing == nullptr) return made;
    outgoing->pack(layout, base, true);
    job.transport->leave(std::move(outgoing));
    return Descriptor::of(head, kBytes, job.world_rank);
  }
  const auto offered = job.ranks->offer(base, layout, local, protocol::Behind::always, made.ticket);
  if (!offered) return made;
  made.bytes = static_cast<std::uint64_t>(kBytes);
  made.source = job.local_rank;
  if (job.ranks->leave(*offered)) job.ranks->test(*offered);
  return made;
}

std::uint64_t odd_number(Random& random) {
  const std::vector<std::uint64_t> odd{0,
                                       1,
                                       2,
                                       Descriptor::kBytes,
                                       static_cast<std::uint64_t>(kBytes - 1),
                                       static_cast<std::uint64_t>(kBytes + 1),
                                       static_cast<std::uint64_t>(2 * kBytes),
                                       std::uint64_t{1} << 31,
                                       (std::uint64_t{1} << 32) - 1,
                                       std::uint64_t{1} << 62,
                                       std::uint64_t{1} << 63,
                                       ~std::uint64_t{0}};
  return random.one_in(3) ? random.next() : random.pick(odd);
}

void spoil(Random& random, Descriptor& descriptor, const Descriptor& before) {
  std::byte* const ticket = reinterpret_cast<std::byte*>(&descriptor.ticket);
  const auto in_ticket = [&](std::size_t bytes) {
    return ticket + random.below(static_cast<std::int64_t>(sizeof descriptor.ticket - bytes + 1));
  };
  switch (random.below(8)) {
    case 0: descriptor.bytes = odd_number(random); break;
    case 1: descriptor.source = static_cast<std::int32_t>(odd_number(random)); break;
    case 2: descriptor.source = ~descriptor.source; break;
    case 3: descriptor.ticket = before.ticket; break;
    case 4: *in_ticket(1) ^= static_cast<std::byte>(1U << random.below(8)); break;
    case 5:
    case 6: {
      const std::uint64_t odd = odd_number(random);
      const std::size_t bytes = random.one_in(2) ? 4 : 8;
      std::memcpy(random.one_in(2) ? in_ticket(bytes) : ticket + 4 * random.below((sizeof descriptor.ticket - bytes) / 4 + 1), &odd, bytes);
      break;
    }
    default: break;  // it holds
  }
}

// Of the ranks' only receive that is under way.
void expect_gaps_intact(const std::vector<int>& memory) {
  for (std::size_t i = 1; i < memory.size(); i += 2) ASSERT_EQ(memory[i], static_cast<int>(i) - 100'000) << "int " << i;
}

void run_job(const Options& options, std::uint64_t seed) {
  constexpr int kLooksAtOne = 200;
  std::deque<std::vector<int>> memories;  // what is under way may be written
  std::vector<int> source = numbers(1);
  const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
    return_errors(mpi.world);
    Datatype type = every_second(mpi);
    Random random(seed);
    if (rank == 1) {
      const auto use = mpi::job->types.find(type);
      const auto layout = use->of(1);
      Descriptor before;
      for (int i = 0; i < kMessages; ++i) {
        const Descriptor good = true_one(options.nodes > 1 ? -1 : 0, *layout, source);
        Descriptor sent = good;
        spoil(random, sent, before);
        before = good;
        const Descriptor::Wire wire = sent.encode(mpi::job->nonce);
        mpi::host().Send(wire.data(), Descriptor::kBytes, mpi.byte, 0, 7, mpi.world);
      }
      // Nothing of it goes before the other has looked.
      mpi::host().Recv(nullptr, 0, mpi.byte, 0, 8, mpi.world, mpi::ignored());
    } else {
      for (int i = 0; i < kMessages; ++i) {
        std::vector<int>& memory = memories.emplace_back(numbers(-100'000));
        Request request{};
        mpi.Irecv(memory.data(), 1, type, 1, 7, mpi.world, &request);
        int over = 0;  // MPI_Test would wait for what is announced
        for (int look = 0; look < kLooksAtOne && over == 0; ++look) {
          mpi.Request_get_status(request, &over, mpi::ignored());
          sched_yield();
        }
        if (over != 0) mpi.Wait(&request, mpi::ignored());
        expect_gaps_intact(memory);
      }
      for (const std::vector<int>& memory : memories) expect_gaps_intact(memory);
      mpi::host().Send(nullptr, 0, mpi.byte, 1, 8, mpi.world);
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) {
    if (!wrong.ends_with("requests are left over")) ADD_FAILURE() << wrong;  // of receives that never end
  }
}

TEST(HostileDescriptors, DoNoHarm) {
  const auto all_ways = [](std::uint64_t seed) {
    for (const Options& options : {Options{}, Options{.nodes = 2}, Options{.nodes = 2, .nic = "fake"}}) run_job(options, seed);
  };
  RecordProperty("jobs", support::fuzz(kJobs, all_ways));
}

// Chunks that are as long as a peer says: memory is taken for what the receive can take.
TEST(HostileDescriptors, TakeNoMemoryForWhatAPeerSays) {
  const Outcome outcome = run_preloaded({.nodes = 2}, [](const Host& mpi, int rank) {
    if (rank != 0) return;
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(-100'000);
    mpi::Job& job = *mpi::job;
    const auto use = job.types.find(type);
    for (const std::int64_t bytes : {kBytes, std::int64_t{1} << 30, std::int64_t{1} << 40}) {
      const auto chunk = static_cast<std::int32_t>(std::min<std::int64_t>(bytes, 1 << 30));
      scarce::longest = 0;
      const auto lock = job.enter();
      auto begun = job.transport->begin_incoming(
          1, {.number = 1, .chunk = chunk}, bytes,
          {.layout = *use->of(1), .base = reinterpret_cast<std::byte*>(memory.data()), .straight = nullptr, .capacity = kBytes});
      ASSERT_TRUE(begun);
      EXPECT_FALSE((*begun)->move());
      EXPECT_LT(scarce::longest, std::size_t{1} << 20) << bytes;
    }
    // A chunk longer than its message
    EXPECT_FALSE(job.transport->begin_incoming(1, {.number = 1, .chunk = 1 << 20}, kBytes, {}));
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) {
    if (!wrong.ends_with("requests are left over")) ADD_FAILURE() << wrong;  // of chunks that never come
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
