#include "lacuna/mpi/host/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace lacuna::mpi {
namespace {

constexpr std::size_t kMostCpus = 1 << 16;
constexpr std::int64_t kWhole = 1000;  // a CPU

// sched_getaffinity() says no more than that there are more CPUs than there is room for.
void look_at_set(Cpus& own) {
  for (std::size_t cpus = CPU_SETSIZE; cpus <= kMostCpus; cpus *= 2) {
    std::vector<char> memory(CPU_ALLOC_SIZE(cpus));
    auto* const set = reinterpret_cast<cpu_set_t*>(memory.data());
    if (sched_getaffinity(0, memory.size(), set) != 0) continue;
    own.count = std::max(CPU_COUNT_S(memory.size(), set), 1);
    own.set = digest_of({memory.data(), memory.size()});
    return;
  }
}

// 0: no limit.
std::int64_t in_thousandths(double quota, double period) {
  return quota > 0 && period > 0 ? std::max(static_cast<std::int64_t>(quota / period * kWhole), std::int64_t{1}) : 0;
}

// Of one group: the files of version 2, or of version 1.
std::int64_t quota_of(const std::string& folder) {
  double quota = 0, period = 0;
  // "max" is no number
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period) return in_thousandths(quota, period);
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return in_thousandths(quota, period);
}

// The least of a group and those that it is in. In a container the path may be that of the machine, and only its root
// be there.
void look_at_group(Cpus& own, const std::string& mounted, std::string path) {
  for (;;) {
    if (path == "/") path.clear();
    const std::int64_t quota = quota_of(mounted + path);
    if (quota > 0 && (own.quota == 0 || quota < own.quota)) {
      own.quota = quota;
      own.group = digest_of(mounted + path);
    }
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

Cpus own_cpus(const std::string& root) {
  Cpus own;
  look_at_set(own);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,") look_at_group(own, root + "/sys/fs/cgroup", line.substr(second + 1));
    if (controllers.find(",cpu,") != std::string::npos) look_at_group(own, root + "/sys/fs/cgroup/cpu", line.substr(second + 1));
  }
  return own;
}

bool crowded(std::span<const Cpus> processes) {
  std::map<std::uint64_t, std::int64_t> bound;  // processes of each set
  std::map<std::uint64_t, std::int64_t> left;   // of each group's time
  std::int64_t cpus = 0;
  bool few = false;
  for (const Cpus& one : processes) {
    std::int64_t& together = bound[one.set];
    if (together++ == 0) cpus += one.count;
    few = few || together > one.count;
    if (one.quota == 0) continue;
    std::int64_t& time = left.try_emplace(one.group, one.quota).first->second;
    time -= kWhole;
    few = few || time < 0;
  }
  return few || std::cmp_less(cpus, processes.size());
}

}  // namespace lacuna::mpi
