// The machine that a process is on, and its devices. tests/interposer has several of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "lacuna/nic/nic.hpp"

namespace lacuna::mpi {

/// The same for processes with the same kernel that can meet by name, which namespaces of the network may keep them
/// from.
std::array<std::uint64_t, 2> node();
/// nic::open(), of what answers other processes while this one is in calls of the host's.
base::Result<std::unique_ptr<nic::Context>> open_device(const std::string& name);

}  // namespace lacuna::mpi
