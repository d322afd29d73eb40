#include "tests/support/ranks.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "lacuna/nic/world.hpp"
#include "tests/nic/rig.hpp"
#include "tests/support/child.hpp"

namespace lacuna::test {
namespace {

// Ranks that are through, in memory that all processes share: nobody leaves before all are, or somebody failed.
class Finish {
 public:
  Finish()
      : count_(static_cast<std::atomic<int>*>(
            mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Finish() { munmap(count_, sizeof(std::atomic<int>)); }
  Finish(const Finish&) = delete;
  Finish& operator=(const Finish&) = delete;

  // `threaded`: the context is the communicator's thread's.
  std::string wait(protocol::Communicator& ranks, std::string wrong, bool threaded) const {
    *count_ += wrong.empty() ? 1 : 1000;
    const auto now = [&] { return threaded ? base::now_ns() : ranks.context().now(); };
    const std::int64_t deadline = now() + kPatience;
    while (*count_ < ranks.size()) {
      if (ranks.progress()) continue;
      if (threaded) std::this_thread::yield();
      if (threaded ? now() > deadline : !ranks.context().wait(deadline)) return wrong + in_vain("the other ranks to come to their end");
    }
    return wrong;
  }

 private:
  std::atomic<int>* count_;
};

// What the user of this machine has measured, or measures just now, is not to choose.
void without_profile() { setenv("LACUNA_PROFILE", "/nonexistent/profile.json", 0); }

std::string run_rank(const Setting& setting, protocol::Group group, const Finish& finish, const Program& program) {
  const bool device = tested_nic().starts_with("verbs:");
  const std::string usual = tests_ofi() ? tested_nic() : "local";
  const std::string nic = !setting.pins ? usual : device ? tested_nic() : "verbs:fake5_0";
  const auto context = LACUNA_END_TRY(setting.pins && !device ? mlx5::open(setting.nic) : nic::open(nic, setting.nic));
  const auto ranks = LACUNA_END_TRY(protocol::Communicator::create(*context, nic, std::move(group), setting.options));
  return finish.wait(*ranks, program(*ranks), setting.options.progress_thread);
}

std::string in_threads(const Setting& setting, std::vector<protocol::Group> made, const Program& program) {
  std::vector<std::string> wrong(made.size());
  std::vector<std::thread> threads;
  const Finish finish;
  for (std::size_t i = 0; i < made.size(); ++i)
    threads.emplace_back([&, i] { wrong[i] = run_rank(setting, std::move(made[i]), finish, program); });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (std::size_t i = 0; i < wrong.size(); ++i) all += wrong[i].empty() ? "" : fmt::format("rank {}: {}\n", i, wrong[i]);
  return all;
}

std::string in_processes(const Setting& setting, std::vector<protocol::Group> made, const Program& program) {
  std::vector<std::unique_ptr<Child>> children;
  const Finish finish;
  for (std::size_t i = 0; i < made.size(); ++i) {
    children.push_back(std::make_unique<Child>([&] {
      protocol::Group own = std::move(made[i]);
      made.clear();
      if (setting.before) setting.before(own.rank);
      return run_rank(setting, std::move(own), finish, program);
    }));
  }
  made.clear();
  std::string all;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string wrong = children[i]->end();
    if (!wrong.empty()) all += fmt::format("rank {}: {}\n", i, wrong);
  }
  return all;
}

}  // namespace

base::Result<std::vector<protocol::Group>> groups(int ranks) {
  without_profile();
  std::vector<protocol::Group> made(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) {
    made[static_cast<std::size_t>(i)].rank = i;
    made[static_cast<std::size_t>(i)].peers.resize(static_cast<std::size_t>(ranks));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    for (std::size_t j = i + 1; j < made.size(); ++j) {
      auto [one, other] = LACUNA_TRY(nic::UnixBootstrap::socket_pair());
      made[i].peers[j] = std::make_unique<nic::UnixBootstrap>(std::move(one));
      made[j].peers[i] = std::make_unique<nic::UnixBootstrap>(std::move(other));
    }
  }
  return made;
}

base::Result<void> can_pin() {
  if (!tested_nic().starts_with("verbs:")) return mlx5::pin_pages();
  return {};
}

std::string in_ranks(const Setting& setting, const Program& program) {
  auto made = LACUNA_END_TRY(groups(setting.ranks));
  return setting.processes ? in_processes(setting, std::move(made), program) : in_threads(setting, std::move(made), program);
}

namespace {

using FormGroup = protocol::Group (*)(nic::World& world, int rank);

std::string in_world(const nic::WorldOptions& wanted, FormGroup form, const protocol::Options& options, const Program& program,
                     std::vector<nic::World::Usage>* seen) {
  without_profile();
  auto world = LACUNA_END_TRY(nic::simulate(wanted));
  std::vector<std::string> wrong(static_cast<std::size_t>(wanted.ranks));
  if (seen != nullptr) seen->resize(wrong.size());
  const Finish finish;
  LACUNA_END_TRY(world->run([&](int rank) -> base::Result<void> {
    const auto made = LACUNA_TRY(protocol::Communicator::create(world->context(rank), "model", form(*world, rank), options));
    wrong[static_cast<std::size_t>(rank)] = finish.wait(*made, program(*made), options.progress_thread);
    if (seen != nullptr) (*seen)[static_cast<std::size_t>(rank)] = world->usage(rank);
    return {};
  }));
  std::string all;
  for (std::size_t i = 0; i < wrong.size(); ++i) all += wrong[i].empty() ? "" : fmt::format("rank {}: {}\n", i, wrong[i]);
  return all;
}

constexpr const char* kPlatform = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json";

}  // namespace

std::string in_model(int ranks, const protocol::Options& options, const Program& program) {
  return in_world({.profile = kPlatform, .overrides = {}, .ranks = ranks}, protocol::form_group, options, program, nullptr);
}

std::string in_nodes(int ranks, int ranks_per_node, const protocol::Options& options, const Program& program,
                     std::vector<nic::World::Usage>* seen) {
  return in_world({.profile = kPlatform, .overrides = {}, .ranks = ranks, .ranks_per_node = ranks_per_node}, protocol::form_group_by_hub,
                  options, program, seen);
}

}  // namespace lacuna::test
