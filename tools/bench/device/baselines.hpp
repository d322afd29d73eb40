// The ways that a program has without Lacuna: the copy engine's, and the kernel that one writes first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/device/device.hpp"

namespace lacuna::bench {

struct Contender {
  std::string name;
  std::function<bool()> run;  ///< asks for it on the stream; false if the device refuses
};

/// What is needed of the driver beyond the seam.
class Baselines {
 public:
  struct State;
  /// Errors: unsupported.
  static base::Result<std::unique_ptr<Baselines>> make(std::shared_ptr<device::Device> device);
  Baselines();
  ~Baselines();
  Baselines(const Baselines&) = delete;
  Baselines& operator=(const Baselines&) = delete;

  /// Those that can move the pair: "element" (one thread for each element), "2D", "3D", "batch".
  std::vector<Contender> of(const device::Pair& pair, device::Addresses addresses, device::Stream stream);
  /// A kernel that does nothing.
  bool nothing(device::Stream stream);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lacuna::bench
