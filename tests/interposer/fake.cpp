// The fake's table of functions, and its runs.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "lacuna/mpi/host/machine.hpp"
#include "lacuna/mpi/job/job.hpp"
#include "lacuna/mpi/report/passed.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/interposer/world.hpp"
#include "tests/support/mlx5/fake.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::mpi {
#define X(name, arguments) extern "C" int MPI_##name arguments;
LACUNA_MPI_HOST_CALLS(X)
LACUNA_MPI_HOST_CALLS_MAYBE(X)
#undef X
#define X(name, later, arguments)                                  \
  extern "C" int MPI_##name(arguments(int, int), Comm);            \
  extern "C" int MPI_##later(arguments(int, int), Comm, Request*); \
  extern "C" int MPI_##name##_init(arguments(int, int), Comm, Info, Request*);
LACUNA_MPI_COLLECTIVES(X)
#undef X
}  // namespace lacuna::mpi

namespace lacuna::test::fake {
namespace {

using mpi::kSuccess;

// What the interposer has in a program's way beside what passes through it (LACUNA_MPI_PASSING).
#define INTERPOSED(X)    \
  X(Init_thread)         \
  X(Finalize)            \
  X(Cart_create)         \
  X(Comm_dup)            \
  X(Comm_free)           \
  X(Type_commit)         \
  X(Type_dup)            \
  X(Type_free)           \
  X(Win_create)          \
  X(Win_create_dynamic)  \
  X(Win_allocate)        \
  X(Win_allocate_shared) \
  X(Win_free)            \
  X(Win_fence)           \
  X(Win_complete)        \
  X(Win_unlock)          \
  X(Win_unlock_all)      \
  X(Win_flush)           \
  X(Win_flush_all)       \
  X(Win_flush_local)     \
  X(Win_flush_local_all)

Host preloaded() {
  Host made = mpi::host();
#define X(name) made.name = &mpi::MPI_##name;
  INTERPOSED(X)
  LACUNA_MPI_PASSING(X)
  LACUNA_MPI_PASSING_SMALL(X)
#undef X
#define X(name, later, arguments) \
  made.name = &mpi::MPI_##name;   \
  made.later = &mpi::MPI_##later; \
  made.name##_init = &mpi::MPI_##name##_init;
  LACUNA_MPI_COLLECTIVES(X)
#undef X
  return made;
}

// Each call of the host's may be one that fails.
template <std::size_t N>
struct Text {
  char text[N]{};
  constexpr Text(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT(google-explicit-constructor)
};
template <class Argument>
Comm comm_of(Argument argument) {
  if constexpr (std::is_same_v<Argument, Comm>) return argument;
  if constexpr (std::is_same_v<Argument, Request*>) {
    const Lock lock = enter();
    const auto found = me->requests.find(*argument);
    if (found != me->requests.end()) return found->second->comm;
  }
  return mpi::host().no_comm;
}
// What a call ends with that has gone wrong on this communicator.
int told(Comm comm, int code) {
  if (!me->world->options.forgives || comm == mpi::host().no_comm) return code;
  Errhandler handler{};
  calls::Comm_get_errhandler(comm, &handler);
  if (!mpi::is_own(handler)) return code;
  raise(comm, code);
  return kSuccess;
}
template <Text kCall, auto kFunction>
struct Faulty;
template <Text kCall, class... Arguments, int (*kFunction)(Arguments...)>
struct Faulty<kCall, kFunction> {
  static int call(Arguments... arguments) {
    const scarce::Other others;
    if (const int code = fault_of(kCall.text); code != kSuccess) {
      Comm of = mpi::host().no_comm;
      ((of = of == mpi::host().no_comm ? comm_of(arguments) : of), ...);
      return told(of, code);
    }
    return kFunction(arguments...);
  }
};

}  // namespace

namespace calls {

int Init(int* /*argc*/, char*** /*argv*/) { return kSuccess; }
int Init_thread(int* /*argc*/, char*** /*argv*/, int /*required*/, int* provided) { return Query_thread(provided); }
int Finalize() {
  delete_attributes(mpi::host().self);
  Request request{};
  Ibarrier(mpi::host().world, &request);
  const int told = Wait(&request, mpi::ignored());
  if (told != kErrProcFailed) return told;
  World& world = *me->world;  // of those that live each waits for all
  Lock lock = enter();
  ++world.through;
  world.changed.notify_all();
  const auto all = [&] {
    return std::cmp_equal(world.through, std::ranges::count(world.ranks, false, [](const auto& rank) { return rank->dead; }));
  };
  world.changed.wait(lock, all);
  return kSuccess;
}
int Abort(Comm /*comm*/, int code) {
  const Lock lock = enter();
  complain("MPI_Abort: " + std::to_string(code));
  return kSuccess;
}
int Query_thread(int* provided) {
  *provided = me->world->options.threads ? mpi::kThreadMultiple : 0;
  return kSuccess;
}
int Get_library_version(char* version, int* length) {
  const bool open_mpi = me->world->options.open_mpi;
  *length = std::snprintf(version, 64, "%s, a fake within one process", open_mpi ? "Open MPI" : "MPICH Version:\t5.0.0");
  if (open_mpi) ++*length;  // as Open MPI 5 does: the zero, too
  return kSuccess;
}

}  // namespace calls

namespace {

Host table() {
  Host made;
#define X(name, arguments) made.name = &Faulty<#name, &calls::name>::call;
  LACUNA_MPI_HOST_CALLS(X)
#undef X
  made.Get_elements_x = &calls::Get_elements_x;
  made.Status_set_elements_x = &calls::Status_set_elements_x;
  made.Type_get_envelope_c = &Faulty<"Type_get_envelope_c", &calls::Type_get_envelope_c>::call;
  made.Type_get_contents_c = &Faulty<"Type_get_contents_c", &calls::Type_get_contents_c>::call;
  made.Isendrecv_replace = &Faulty<"Isendrecv_replace", &calls::Isendrecv_replace>::call;
  made.Isendrecv = &Faulty<"Isendrecv", &calls::Isendrecv>::call;
  made.Request_is_complete = &calls::Request_is_complete;
  made.Cart_create = &Faulty<"Cart_create", &calls::Cart_create>::call;
  made.Comm_get_stream = &Faulty<"Comm_get_stream", &calls::Comm_get_stream>::call;
  fill_collectives(made);
  made.world = reinterpret_cast<Comm>(mpi::kCommWorld);
  made.self = reinterpret_cast<Comm>(mpi::kCommSelf);
  made.no_comm = reinterpret_cast<Comm>(mpi::kCommNull);
  made.byte = byte_type();
  made.no_type = reinterpret_cast<Datatype>(mpi::kDatatypeNull);
  made.band = reinterpret_cast<mpi::Op>(mpi::kBand);
  made.no_request = reinterpret_cast<Request>(mpi::kRequestNull);
  made.no_message = reinterpret_cast<Message>(mpi::kMessageNull);
  made.message_of_none = reinterpret_cast<Message>(mpi::kMessageNoProc);
  return made;
}

std::unique_ptr<Rank> rank_of(World& world, int number) {
  auto rank = std::make_unique<Rank>();
  rank->world = &world;
  rank->number = number;
  rank->random = support::Random(world.options.slow * 1000 + static_cast<std::uint64_t>(number));
  auto all = std::make_unique<CommObject>();
  for (int i = 0; i < world.options.ranks; ++i) all->group.push_back(i);
  all->rank = number;
  all->context = 1'000'000;
  rank->comms[reinterpret_cast<Comm>(mpi::kCommWorld)] = std::move(all);
  auto alone = std::make_unique<CommObject>();
  alone->group = {number};
  alone->context = 2'000'000 + static_cast<std::uint64_t>(number);
  rank->comms[reinterpret_cast<Comm>(mpi::kCommSelf)] = std::move(alone);
  return rank;
}

Outcome run(const Options& options, const Program& program, const std::vector<Fault>& faults, const Host& mpi) {
  const Watchdog watchdog("a program on the fake MPI");
  World world;
  world.options = options;
  world.faults = faults;
  for (int i = 0; i < options.ranks; ++i) world.ranks.push_back(rank_of(world, i));
  // Others take what is in them until all have ended
  std::vector<std::unique_ptr<mpi::Job>> jobs(static_cast<std::size_t>(options.ranks));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.ranks; ++i) {
      threads.emplace_back([&, i] {
        me = world.ranks[static_cast<std::size_t>(i)].get();
        int provided = 0;
        mpi.Init_thread(nullptr, nullptr, mpi::kThreadMultiple, &provided);
        if (options.was_scarce != nullptr && i + 1 == options.ranks) *options.was_scarce = scarce::left == -1;
        scarce::left = -2;
        jobs[static_cast<std::size_t>(i)].reset(mpi::job);
        program(mpi, i);
        if (!me->dead) mpi.Finalize();
        me = nullptr;
      });
    }
  }
  for (const auto& rank : world.ranks) {
    if (!rank->dead) continue;
    me = rank.get();  // as if it had ended: what is left of it is given back
    jobs[static_cast<std::size_t>(rank->number)].reset();
    me = nullptr;
  }
  Outcome outcome;
  outcome.wrong = world.wrong;
  for (const auto& rank : world.ranks) {
    const auto& job = jobs[static_cast<std::size_t>(rank->number)];
    if (job != nullptr && rank->requests.empty() && !job->remembered.empty())
      outcome.wrong.push_back("rank " + std::to_string(rank->number) + ": requests are remembered that are over");
    for (const auto& [call, times] : rank->calls) outcome.calls[call] += times;
    if (rank->dead) continue;
    const auto complain = [&](const char* what) { outcome.wrong.push_back("rank " + std::to_string(rank->number) + ": " + what); };
    if (!rank->requests.empty()) complain("requests are left over");
    const auto left = [&](std::uint64_t context) { return rank->freed.contains(context); };
    if (std::ranges::any_of(rank->unexpected, left, &Mail::context))
      complain("a message that no receive took, of a communicator that was freed");
    if (std::ranges::any_of(rank->posted, [&](const Held& each) { return left(each->context); }))
      complain("a receive that no message came to, of a communicator that was freed");
  }
  return outcome;
}

}  // namespace

Outcome run_plain(const Options& options, const Program& program, const std::vector<Fault>& faults) {
  return run(options, program, faults, mpi::host());
}

Outcome run_preloaded(const Options& options, const Program& program, const std::vector<Fault>& faults) {
  static const Host table = preloaded();
  setenv("LACUNA_MPI_DECODE", options.decode_at == 0 ? "" : std::to_string(options.decode_at).c_str(), 1);
  // no way of a test may depend on what this machine's MPIs were measured to take
  setenv("LACUNA_MPI_OFFER", "8192", 0);
  setenv("LACUNA_MPI_PROFILE", options.profile.c_str(), 1);
  setenv("LACUNA_MPI_DISTANCE", options.distance.c_str(), 1);  // nor on where its CPUs are
  setenv("LACUNA_MPI_NIC", options.nic.c_str(), 1);            // by its name, or one in software is not taken
  return run(options, program, faults, table);
}

std::jthread thread_of_rank(std::function<void()> body) {
  return std::jthread([rank = me, job = mpi::job, body = std::move(body)] {
    me = rank;
    mpi::job = job;
    body();
    mpi::job = nullptr;
    me = nullptr;
  });
}

}  // namespace lacuna::test::fake

namespace lacuna::mpi {

std::array<std::uint64_t, 2> node() {
  const test::fake::Options& options = test::fake::me->world->options;
  return {1, static_cast<std::uint64_t>(test::fake::me->number * options.nodes / options.ranks)};
}

base::Result<std::unique_ptr<nic::Context>> open_device(const std::string& name) {
  if (name == "fake") return test::mlx5::open();
  if (name == test::fake::me->world->options.nic) return nic::open(name, {.attended = true});
  return base::fail(base::Code::unsupported, "this machine has no device");
}

std::int64_t bytes_of(const Status& status) {
  std::int64_t bytes = 0;
  std::memcpy(&bytes, status.internal, sizeof bytes);
  return bytes;
}

std::string tool_behind(std::span<const char* const> /*functions*/) { return {}; }

const Host& find_host() {
  static const Host made = [] {
    Host table = test::fake::table();
    fill_missing(table);
    return table;
  }();
  return made;
}

}  // namespace lacuna::mpi
