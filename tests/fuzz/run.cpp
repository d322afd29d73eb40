#include "tests/fuzz/run.hpp"

#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "lacuna/base/base.hpp"

namespace lacuna::fuzz {
namespace {

// What the process that tries inputs tells the one that waits for it.
struct Shared {
  std::atomic<std::int64_t> corpus, inputs, taken, canary;
  std::atomic<bool> over;
  char now[256];  // the input that is tried
  char wrong[4096];
  char bad[256];  // the input that is wrong; empty: none
  char skipped[1024];
};

void put(std::span<char> to, const std::string& text) {
  const std::size_t bytes = std::min(text.size(), to.size() - 1);
  std::copy_n(text.data(), bytes, to.data());
  to[bytes] = '\0';
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What checks of GoogleTest say on any thread is part of the verdict.
Verdict judged(const Fuzzer& fuzzer, const Bytes& input, bool planted) {
  testing::TestPartResultArray said;
  Verdict verdict;
  {
    const testing::ScopedFakeTestPartResultReporter listening(testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &said);
    verdict = fuzzer.judge(input, planted);
  }
  for (int i = 0; i < said.size(); ++i) {
    if (said.GetTestPartResult(i).failed())
      verdict.wrong += std::string(verdict.wrong.empty() ? "" : "; ") + said.GetTestPartResult(i).message();
  }
  return verdict;
}

class Trial {
 public:
  Trial(const Fuzzer& fuzzer, const Wanted& wanted, Shared& shared) : fuzzer_(fuzzer), wanted_(wanted), shared_(shared) {}

  void all() {
    if (const std::string why = fuzzer_.lacks != nullptr ? fuzzer_.lacks() : ""; !why.empty()) return put(shared_.skipped, why);
    if (!wanted_.file.empty()) {
      tried(wanted_.file, read_file(wanted_.file));
      return;
    }
    const bool smoke = wanted_.inputs < 0;
    const std::int64_t inputs = smoke ? std::max<std::int64_t>(1, std::llround(fuzzer_.smoke * wanted_.times)) : wanted_.inputs;
    if (smoke && !(corpus() && canary())) return;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const std::uint64_t seed = wanted_.seed + static_cast<std::uint64_t>(i);
      if (!tried(fmt::format("seed {}", seed), drawn(seed))) return;
      ++shared_.inputs;
    }
    const double share = static_cast<double>(shared_.taken) / static_cast<double>(std::max<std::int64_t>(inputs, 1));
    if (smoke && share < fuzzer_.least_taken)
      bad("all inputs",
          fmt::format("the library took {} of {} inputs; the least is {:.3g} of them", shared_.taken.load(), inputs, fuzzer_.least_taken));
  }

 private:
  [[nodiscard]] Bytes drawn(std::uint64_t seed) const {
    Random random(seed);
    return fuzzer_.draw(random);
  }
  void bad(const std::string& input, const std::string& wrong) {
    put(shared_.bad, input);
    put(shared_.wrong, wrong);
  }
  bool tried(const std::string& name, const Bytes& input) {
    put(shared_.now, name);
    const Verdict verdict = judged(fuzzer_, input, false);
    shared_.taken += verdict.taken ? 1 : 0;
    if (!verdict.wrong.empty()) bad(name, verdict.wrong);
    return verdict.wrong.empty();
  }
  bool corpus() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(LACUNA_SOURCE_DIR) / "tests/fuzz/corpus" / fuzzer_.name))
      files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) {
      if (!tried(file.string(), read_file(file))) return false;
      ++shared_.corpus;
    }
    shared_.taken = 0;
    return true;
  }
  // A fuzzer that does not see a fault that is there proves nothing.
  bool canary() {
    for (std::int64_t i = 0; i < fuzzer_.smoke; ++i) {
      const std::uint64_t seed = wanted_.seed + static_cast<std::uint64_t>(i);
      put(shared_.now, fmt::format("the canary, seed {}", seed));
      if (judged(fuzzer_, drawn(seed), true).wrong.empty()) continue;
      shared_.canary = i + 1;
      return true;
    }
    bad("the canary", fmt::format("a planted fault was not seen in {} inputs", fuzzer_.smoke));
    return false;
  }

  const Fuzzer& fuzzer_;
  const Wanted& wanted_;
  Shared& shared_;
};

// The report of a sanitizer, or what was logged last.
constexpr std::int64_t kHangsNs = 300'000'000'000;  // without an input more: a smoke run has five seconds for all

std::string end_of(const base::Fd& file) {
  constexpr off_t kMost = 6000;
  const off_t bytes = lseek(file.get(), 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::clamp<off_t>(bytes, 0, kMost)), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), std::max<off_t>(bytes - kMost, 0));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace

Outcome run(const Fuzzer& fuzzer, const Wanted& wanted, const std::function<void(std::int64_t)>& progress) {
  Outcome outcome;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return outcome.found.push_back({"memory for both processes", std::strerror(errno)}), outcome;
  auto& shared = *new (memory) Shared{};
  const base::Fd said(memfd_create("lacuna_fuzz", 0));
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (std::getenv("LACUNA_FUZZ_TRACE") == nullptr) dup2(said.get(), STDERR_FILENO);
    Trial(fuzzer, wanted, shared).all();
    shared.over = true;
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  pid_t ended = child < 0 ? -1 : 0;
  rusage used{};
  std::int64_t last = 0, moved_at = base::now_ns();
  bool hangs = false;
  while (ended == 0 && (ended = wait4(child, &status, WNOHANG, &used)) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t inputs = shared.inputs;
    if (inputs != last) last = inputs, moved_at = base::now_ns();
    if (base::now_ns() - moved_at > kHangsNs && !hangs) hangs = kill(child, SIGKILL) == 0;
    progress(inputs);
  }
  outcome.corpus = shared.corpus;
  outcome.inputs = shared.inputs;
  outcome.taken = shared.taken;
  outcome.canary = shared.canary;
  outcome.skipped = shared.skipped;
  for (const timeval& one : {used.ru_utime, used.ru_stime})
    outcome.cpu_s += static_cast<double>(one.tv_sec) + static_cast<double>(one.tv_usec) * 1e-6;
  if (child < 0) outcome.found.push_back({"a process of its own", std::strerror(errno)});
  if (shared.bad[0] != '\0') outcome.found.push_back({shared.bad, shared.wrong});
  if (hangs)
    outcome.found.push_back({shared.now, "it hangs"});
  else if (child > 0 && !(shared.over && status == 0))
    outcome.found.push_back({shared.now, WIFSIGNALED(status) ? fmt::format("it ends its process: {}", strsignal(WTERMSIG(status)))
                                                             : fmt::format("it ends its process with {}", WEXITSTATUS(status))});
  if (!outcome.found.empty()) outcome.said = end_of(said);
  munmap(memory, sizeof(Shared));
  return outcome;
}

}  // namespace lacuna::fuzz
