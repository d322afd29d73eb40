// The CPUs that a process may use: those that it is bound to, and as much of their time as its control groups give it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lacuna::mpi {

/// FNV-1a.
inline std::uint64_t digest_of(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return value;
}

/// Of one process, as it tells the others of its node.
struct Cpus {
  std::int64_t count = 1;   ///< that it may run on
  std::uint64_t set = 0;    ///< which ones: the same number for the same set
  std::int64_t quota = 0;   ///< of the time of a CPU, in thousandths, that its control group has; 0: no limit
  std::uint64_t group = 0;  ///< which one: the same number for the same group
};

/// Of this process. `root`: of the files that say so; a test has others.
Cpus own_cpus(const std::string& root = "");
/// Whether processes of one node have fewer CPUs than they are: all of them, or those of a control group. Sets of CPUs
/// that overlap in part count as if they did not.
bool crowded(std::span<const Cpus> processes);

}  // namespace lacuna::mpi
