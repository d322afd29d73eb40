// What a peer of a preloaded program sends in a message's place: descriptors that are none, that name what is not
// there, or that come twice. A receive of one ends with an error, with a message, or never; its program goes on, and
// nothing is written but where the receive says.
#include <sched.h>

#include <atomic>
#include <cstring>
#include <deque>

#include "lacuna/mpi/job/job.hpp"
#include "tests/fuzz/rows/rows.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::fuzz {
namespace {

using namespace test::fake;
using mpi::Descriptor;

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

bool gaps_intact(const std::vector<int>& memory) {
  for (std::size_t i = 1; i < memory.size(); i += 2) {
    if (memory[i] != static_cast<int>(i) - 100'000) return false;
  }
  return true;
}

// A planted fault: an int that the receive does not name is another.
std::string run_job(const Options& options, std::uint64_t seed, bool planted) {
  std::atomic<bool> harmed = false;
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
        harmed = harmed || !gaps_intact(memory);
      }
      if (planted) memories.front()[1] = 0;
      for (const std::vector<int>& memory : memories) harmed = harmed || !gaps_intact(memory);
      mpi::host().Send(nullptr, 0, mpi.byte, 1, 8, mpi.world);
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) {
    if (!wrong.ends_with("requests are left over")) return wrong;  // of receives that never end
  }
  return harmed ? "bytes were written that no receive names" : "";
}

Verdict judge(const Bytes& input, bool planted) {
  const std::uint64_t seed = seed_of(input);
  const std::vector<Options> ways{{}, {.nodes = 2}, {.nodes = 2, .nic = "fake"}};
  return {.taken = true, .wrong = run_job(ways[seed % ways.size()], seed / ways.size(), planted)};
}

}  // namespace

Fuzzer mpi_descriptor() {
  return {.name = "mpi_descriptor",
          .what = "what a peer of a preloaded program sends in a message's place",
          .smoke = 300,
          .least_taken = 1,
          .draw = draw_seed,
          .judge = judge};
}

}  // namespace lacuna::fuzz
