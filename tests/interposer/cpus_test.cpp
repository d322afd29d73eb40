// How many CPUs a job's ranks have: what binds them, and what control groups give them, and not how many the machine
// has.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "lacuna/mpi/host/cpus.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using mpi::Cpus;
namespace fs = std::filesystem;

// The files of control groups.
struct Files {
  fs::path root = fs::path(testing::TempDir()) / ("cpus-" + std::to_string(getpid()));
  Files() { fs::create_directories(root); }
  ~Files() { fs::remove_all(root); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text << "\n";
  }
  [[nodiscard]] Cpus look() const { return mpi::own_cpus(root.string()); }
};

TEST(InterposedCpus, AreThoseThatTheProcessIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(mpi::own_cpus().count, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Cpus bound = mpi::own_cpus();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(bound.count, 1);
  EXPECT_EQ(bound.set == mpi::own_cpus().set, CPU_COUNT(&before) == 1);
}

TEST(InterposedCpus, HaveTheTimeOfTheirGroup) {
  const Files files;
  EXPECT_EQ(files.look().quota, 0);
  files.write("proc/self/cgroup", "0::/jobs/ours");
  EXPECT_EQ(files.look().quota, 0);
  files.write("sys/fs/cgroup/jobs/ours/cpu.max", "max 100000");
  EXPECT_EQ(files.look().quota, 0);
  files.write("sys/fs/cgroup/jobs/ours/cpu.max", "250000 100000");
  EXPECT_EQ(files.look().quota, 2500);
  const std::uint64_t group = files.look().group;
  files.write("sys/fs/cgroup/jobs/cpu.max", "400000 100000");
  EXPECT_EQ(files.look().quota, 2500);
  files.write("sys/fs/cgroup/jobs/cpu.max", "150000 100000");
  EXPECT_EQ(files.look().quota, 1500);
  EXPECT_NE(files.look().group, group);
}

TEST(InterposedCpus, HaveTheTimeOfTheirContainer) {
  const Files files;
  files.write("proc/self/cgroup", "0::/outside/of/it");
  files.write("sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(files.look().quota, 500);
}

TEST(InterposedCpus, HaveTheTimeOfTheirGroupOfVersionOne) {
  const Files files;
  files.write("proc/self/cgroup", "5:cpuacct,cpu:/ours\n4:cpuset:/theirs\nnonsense");
  files.write("sys/fs/cgroup/cpu/ours/cpu.cfs_quota_us", "-1");
  files.write("sys/fs/cgroup/cpu/ours/cpu.cfs_period_us", "100000");
  EXPECT_EQ(files.look().quota, 0);
  files.write("sys/fs/cgroup/cpu/ours/cpu.cfs_quota_us", "300000");
  EXPECT_EQ(files.look().quota, 3000);
}

TEST(InterposedCpus, AreFewerThanRanks) {
  const Cpus of_two{.count = 2, .set = 1}, first{.count = 1, .set = 2}, second{.count = 1, .set = 3};
  const auto crowded = [](std::vector<Cpus> processes) { return mpi::crowded(processes); };
  EXPECT_FALSE(crowded({of_two}));
  EXPECT_FALSE(crowded({of_two, of_two}));
  EXPECT_TRUE(crowded({of_two, of_two, of_two}));
  EXPECT_FALSE(crowded({first, second})) << "each has its own";
  EXPECT_TRUE(crowded({first, first})) << "both are bound to one";
  EXPECT_TRUE(crowded({first, first, second})) << "two of three are";
  const auto limited = [](std::int64_t quota, std::uint64_t group) { return Cpus{.count = 64, .set = 1, .quota = quota, .group = group}; };
  EXPECT_FALSE(crowded({limited(2000, 1), limited(2000, 1)}));
  EXPECT_TRUE(crowded({limited(1900, 1), limited(1900, 1)}));
  EXPECT_FALSE(crowded({limited(1000, 1), limited(1000, 2)})) << "each has its group";
  EXPECT_TRUE(crowded({limited(500, 1)}));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
