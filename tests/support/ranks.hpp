// Communicators for tests: ranks as threads of this process, as processes, or in a simulated world.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lacuna/protocol/protocol.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/patience.hpp"

namespace lacuna::test {

/// What a rank does; returns what went wrong, or nothing.
using Program = std::function<std::string(protocol::Communicator&)>;

/// How ranks are made.
struct Setting {
  int ranks = 2;
  bool processes = false;  ///< else threads
  bool pins = false;       ///< on a NIC that pins (can_pin()); threads. Else on NIC local, or ofi if that is tested
  nic::OpenOptions nic;
  protocol::Options options;
  std::function<void(int rank)> before = {};  ///< of a process: what it does before it has a communicator
};

/// The device under test pins pages, or the fake of one does from now on (tests/support/mlx5). Errors: unsupported.
base::Result<void> can_pin();

/// What any rank says went wrong.
std::string in_ranks(const Setting& setting, const Program& program);
/// On a simulated NIC.
std::string in_model(int ranks, const protocol::Options& options, const Program& program);
/// Ranks of nodes that share a NIC, connected when they first talk. `seen` gets what each had in the end.
std::string in_nodes(int ranks, int ranks_per_node, const protocol::Options& options, const Program& program,
                     std::vector<nic::World::Usage>* seen = nullptr);

/// Groups for a test that makes its communicators itself: one for each rank, in one process.
base::Result<std::vector<protocol::Group>> groups(int ranks);

}  // namespace lacuna::test
