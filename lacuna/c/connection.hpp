// What is behind a lacuna_comm.
#pragma once

#include <memory>

#include "lacuna/c/handles.hpp"
#include "lacuna/protocol/protocol.hpp"

struct lacuna_comm {
  std::unique_ptr<lacuna::nic::Context> context;
  std::unique_ptr<lacuna::protocol::Communicator> ranks;
};
