// Simulated processes in virtual time, each with a NIC of the model's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {

/// Simulated processes, in virtual time and in this process. Each has a Context, and while run() lasts a stack of its
/// own: they take turns on the thread that calls it. now() of all of them is one clock, which stands still between two
/// calls of the seam.
class World {
 public:
  /// What a process has done and has, by now.
  struct Usage {
    std::int64_t messages = 0;   ///< that its NIC sent, reads' answers among them,
    std::int64_t bytes = 0;      ///< and theirs
    std::int64_t not_ready = 0;  ///< messages to it that came before there was a receive
    std::int64_t connections = 0;
    std::int64_t allocated = 0;   ///< bytes, by Context::allocate()
    std::int64_t registered = 0;  ///< bytes
  };
  virtual ~World() = default;
  using Program = std::function<Result<void>(int rank)>;
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual Context& context(int rank) = 0;
  /// The channel of one rank to another. It costs no time, and both ends wait for one another.
  virtual Bootstrap& bootstrap(int rank, int peer) = 0;
  [[nodiscard]] virtual Usage usage(int rank) = 0;
  /// Runs the program of all ranks to their ends. Queues and queue pairs that it made, it destroys. Errors: the first
  /// rank's that has one.
  virtual Result<void> run(const Program& program) = 0;
};

struct WorldOptions {
  std::string profile;    ///< a file (docs/design/model.md)
  std::string overrides;  ///< JSON: {"parameter": value, ...}; empty for none
  int ranks = 2;
  int ranks_per_node = 1;  ///< that share a NIC: ranks 0 to ranks_per_node - 1, and so on
  /// false: only time is of interest. Then memory holds whatever it held, and flags are raised all the same
  bool moves_bytes = true;
  OpenOptions limits;
};
/// Errors: invalid_argument (what is wrong with the profile, or a parameter, is named), io (the file), limit (ranks).
Result<std::unique_ptr<World>> simulate(const WorldOptions& options);

}  // namespace lacuna::nic
