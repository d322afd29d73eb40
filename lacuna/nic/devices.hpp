// What is known of this machine's RDMA devices, and of libfabric's providers.
#pragma once

#include <string>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {

/// What this machine's devices promise, and what they were found to take, for people (`lacuna info`).
struct DeviceInfo {
  std::string nic;     ///< what open() takes
  std::string driver;  ///< of the kernel; empty where the kernel does not say
  std::string firmware;
  bool emulated = false;   ///< as Limits
  std::string refusal;     ///< why open() refuses it; empty if it does not
  std::string connection;  ///< the port, GID and MTU that its connections use; empty if it is refused
  Limits advertised;       ///< as far as the device tells
  Limits probed;           ///< what queue pairs take, and so open() gives; all 0 if it is refused
  std::string no_umr;      ///< why it has no indirect keys; empty if it has
  std::string windows;     ///< the kinds of its memory windows: "", "1", "1, 2A", "1, 2B"
  bool on_demand_paging = false;
  struct Port {
    int number = 0;
    std::string state, link_layer;  ///< as libibverbs calls them
    int active_mtu = 0, max_mtu = 0;
    int lid = 0;
  };
  std::vector<Port> ports;
};
struct Devices {
  std::string none;  ///< why there are none, in a line
  std::vector<DeviceInfo> list;
};
[[nodiscard]] Devices describe_devices();

/// A provider of libfabric.
struct ProviderInfo {
  std::string nic;         ///< what open() takes
  bool emulated = false;   ///< as Limits
  bool connected = false;  ///< by connected endpoints, which notice when a peer is gone
  bool ordered = false;    ///< several requests may be under way
  std::string refusal;     ///< why open() refuses it; empty if it does not
  Limits limits;           ///< all 0 if it is refused
};
struct Providers {
  std::string none;  ///< why there are none, in a line
  std::vector<ProviderInfo> list;
};
[[nodiscard]] Providers describe_providers();

}  // namespace lacuna::nic
