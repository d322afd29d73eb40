// lacuna_simulate: plays stories, seed by seed, until one goes wrong.
#include <fmt/format.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "commit.hpp"  // cmake/commit.cmake
#include "lacuna/base/base.hpp"
#include "tests/simulate/reached.hpp"
#include "tests/simulate/run.hpp"
#include "tests/simulate/shrink.hpp"

namespace lacuna::simulate {
namespace {

constexpr const char* kHelp = R"(Usage: lacuna_simulate [OPTIONS]

  Play random programs in random simulated worlds in which things go wrong, and judge what comes of each message by a
  model that knows nothing of the library. A seed says all of a world: the ranks, their NIC and its limits, what they
  send, put, get and exchange, and what goes wrong. The same seed always plays the same.

  Examples:
    lacuna_simulate                        a thousand seeds
    lacuna_simulate --rarely --jobs 2      and which rare branches they reach
    lacuna_simulate --seed 5000 --minutes 60 --jobs 8
    lacuna_simulate --seed 183 --seeds 1 --trace

  Exit status: 0; 1 if a seed failed: its number, the commit and the shortest story that still fails are printed, or
  as --rarely says; 2 for wrong usage

Options:
  --seed S     The first seed. [default: 1]
  --seeds N    So many. [default: 1000]
  --minutes M  Until so much time went by, instead of --seeds.
  --jobs N     So many processes. [default: 1]
  --trace      Print the stories, and what happens in each.
  --rarely     Print how often each branch was reached that is marked as rare (LACUNA_RARELY), and fail if one never was.
  --json       Print what came of it as JSON; failures go to standard error.
  --help       Show this message and exit.
)";

struct Options {
  std::uint64_t seed = 1, seeds = 1000;
  double minutes = 0;
  int jobs = 1;
  bool trace = false, rarely = false, json = false;
};

// What the processes have done together, in memory that all of them share.
struct Done {
  std::atomic<std::int64_t> seeds, messages, failed, faults, bad;
};

std::FILE* told(const Options& options) { return options.json ? stderr : stdout; }

std::string shown(const Outcome& outcome) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(outcome.wrong.size(), kMost); ++i) text += "  " + outcome.wrong[i] + "\n";
  if (outcome.wrong.size() > kMost) text += fmt::format("  and {} more\n", outcome.wrong.size() - kMost);
  return text;
}

// Seconds of CPU for a story: a loop without an end is a failure, too. Most need less than one. An exchange of 45
// ranks, by keys that are few, needed 130 (seed 2022112).
constexpr time_t kMostCpu = 300;

Outcome run_in_time(const Story& story, std::FILE* shown = nullptr) {
  const itimerval most{.it_interval = {}, .it_value = {.tv_sec = kMostCpu, .tv_usec = 0}}, none{};
  setitimer(ITIMER_PROF, &most, nullptr);  // SIGPROF ends this process
  Outcome outcome = run(story, false, shown);
  setitimer(ITIMER_PROF, &none, nullptr);
  return outcome;
}

void play(std::uint64_t seed, const Options& options, Done& done, Reached& reached) {
  std::FILE* const out = told(options);
  const Story story = draw(seed);
  if (options.trace) std::fputs(story.describe().c_str(), out);
  std::fflush(out);
  const Outcome outcome = run_in_time(story, options.trace ? out : nullptr);
  reached.take();
  ++done.seeds;
  done.messages += outcome.messages;
  done.failed += outcome.failed;
  done.faults += outcome.happened.faults();
  if (outcome.wrong.empty()) return;
  ++done.bad;
  fmt::print(out, "seed {} of " LACUNA_COMMIT " fails:\n{}", seed, shown(outcome));
  std::fflush(out);
  if (options.trace) return;
  const Story shortest = shrink(story, [](const Story& one) { return !run_in_time(one).wrong.empty(); });
  fmt::print(out, "The shortest story found that fails, {} of {} steps:\n{}{}To see it: lacuna_simulate --seed {} --seeds 1 --trace\n",
             shortest.steps(), story.steps(), shortest.describe(), shown(run_in_time(shortest)), seed);
  std::fflush(out);
}

// One process's share of the seeds.
void play_all(const Options& options, int job, Done& done, std::atomic<std::uint64_t>& now, Reached& reached) {
  const std::int64_t until = base::now_ns() + static_cast<std::int64_t>(options.minutes * 60e9);
  const auto step = static_cast<std::uint64_t>(options.jobs);
  for (std::uint64_t i = static_cast<std::uint64_t>(job); options.minutes > 0 ? base::now_ns() < until : i < options.seeds; i += step) {
    now = options.seed + i;
    play(options.seed + i, options, done, reached);
  }
}

// How many of the rare branches were never reached.
std::int64_t never(const Reached& reached) {
  const std::vector<std::uint64_t> times = reached.times();
  return std::ranges::count(times, 0U);
}

void tell_rarely(const Reached& reached) {
  const std::vector<std::uint64_t> times = reached.times();
  for (std::size_t i = 0; i < times.size(); ++i) fmt::print("{:>12}  {}\n", times[i], reached.names()[i]);
}

void tell_json(const Done& done, const Reached& reached) {
  const std::vector<std::uint64_t> times = reached.times();
  fmt::print("{{\"commit\": \"" LACUNA_COMMIT
             "\", \"seeds\": {}, \"messages\": {}, \"failed\": {}, \"faults\": {}, \"bad_seeds\": {}, \"rarely\": {{",
             done.seeds.load(), done.messages.load(), done.failed.load(), done.faults.load(), done.bad.load());
  for (std::size_t i = 0; i < times.size(); ++i) fmt::print("{}\"{}\": {}", i == 0 ? "" : ", ", reached.names()[i], times[i]);
  fmt::print("}}}}\n");
}

int tell(const Options& options, const Done& done, const Reached& reached) {
  if (options.json) {
    tell_json(done, reached);
  } else {
    if (options.rarely) tell_rarely(reached);
    fmt::print("{} seeds of " LACUNA_COMMIT
               ", {} messages, {} that failed as they may, {} faults, {} bad seeds; {} of {} rare branches never reached\n",
               done.seeds.load(), done.messages.load(), done.failed.load(), done.faults.load(), done.bad.load(), never(reached),
               reached.names().size());
  }
  return done.bad > 0 || (options.rarely && (never(reached) > 0 || reached.names().empty())) ? 1 : 0;
}

int simulate(const Options& options) {
  Reached reached;
  const std::size_t bytes = sizeof(Done) + static_cast<std::size_t>(options.jobs) * sizeof(std::atomic<std::uint64_t>);
  void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::perror("lacuna_simulate: memory for all processes"), 1;
  Done& done = *static_cast<Done*>(shared);
  auto* const now = reinterpret_cast<std::atomic<std::uint64_t>*>(&done + 1);
  std::vector<pid_t> jobs;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t made = fork();
    if (made < 0) {  // the shares of those that there are are played, and the others missed
      std::perror("lacuna_simulate: fork");
      ++done.bad;
      break;
    }
    if (made > 0) jobs.push_back(made);
    if (made > 0) continue;
    play_all(options, job, done, now[job], reached);
    std::fflush(told(options));
    _exit(0);
  }
  std::int64_t shown_at = base::now_ns();
  for (std::size_t left = jobs.size(); left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    const auto job = std::find(jobs.begin(), jobs.end(), ended);
    if (job != jobs.end() && ended > 0) --left;
    if (job != jobs.end() && ended > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
      ++done.bad;
      fmt::print(told(options), "seed {} of " LACUNA_COMMIT " ends its process: {}\n", now[job - jobs.begin()].load(),
                 !WIFSIGNALED(status)          ? "see above"
                 : WTERMSIG(status) == SIGPROF ? "more CPU than any story needs: a loop without an end"
                                               : strsignal(WTERMSIG(status)));
    }
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (isatty(2) != 0 && base::now_ns() - shown_at > 2'000'000'000) {
      shown_at = base::now_ns();
      fmt::print(stderr, "\r{} seeds, {} messages, {} faults, {} bad ", done.seeds.load(), done.messages.load(), done.faults.load(),
                 done.bad.load());
    }
  }
  return tell(options, done, reached);
}

std::optional<double> number(const char* text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end != text && *end == '\0' && value >= least ? std::optional(value) : std::nullopt;
}

int main_of(int argc, char** argv) {
  Options options;
  const std::array<option, 9> known{option{"seed", required_argument, nullptr, 's'},
                                    option{"seeds", required_argument, nullptr, 'n'},
                                    option{"minutes", required_argument, nullptr, 'm'},
                                    option{"jobs", required_argument, nullptr, 'j'},
                                    option{"trace", no_argument, nullptr, 't'},
                                    option{"rarely", no_argument, nullptr, 'r'},
                                    option{"json", no_argument, nullptr, 'o'},
                                    option{"help", no_argument, nullptr, 'h'},
                                    option{}};
  for (int one = 0; (one = getopt_long(argc, argv, "", known.data(), nullptr)) >= 0;) {
    if (one == 'h') return std::fputs(kHelp, stdout), 0;
    if (one == '?') return std::fputs("lacuna_simulate --help says what there is\n", stderr), 2;
    bool* const flag = one == 't' ? &options.trace : one == 'r' ? &options.rarely : one == 'o' ? &options.json : nullptr;
    if (flag != nullptr) *flag = true;
    if (flag != nullptr) continue;
    const std::optional<double> value = number(optarg, one == 's' ? 0 : one == 'm' ? 0.001 : 1);
    if (!value) return fmt::print(stderr, "lacuna_simulate: '{}' is no such number\n", optarg), 2;
    if (one == 's') options.seed = std::strtoull(optarg, nullptr, 10);
    if (one == 'n') options.seeds = static_cast<std::uint64_t>(*value);
    if (one == 'm') options.minutes = *value;
    if (one == 'j') options.jobs = static_cast<int>(*value);
  }
  if (optind < argc) return fmt::print(stderr, "lacuna_simulate: what is '{}'? --help says what there is\n", argv[optind]), 2;
  // What this machine's user has measured or set decides nothing here.
  setenv("LACUNA_PROFILE", "/nonexistent/profile.json", 1);
  return simulate(options);
}

}  // namespace
}  // namespace lacuna::simulate

int main(int argc, char** argv) { return lacuna::simulate::main_of(argc, argv); }
