// Devices by name. Each is made once, and stays as long as somebody has it.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>

#include "lacuna/device/cuda/cuda.hpp"
#include "lacuna/device/emulated/device.hpp"

namespace lacuna::device {
namespace {

Result<std::shared_ptr<Device>> make(std::string_view name) {
  if (name == "emulated") return emulated::make();
  constexpr std::string_view cuda = "cuda:";
  int index = -1;
  if (name.starts_with(cuda)) {
    const auto [end, error] = std::from_chars(name.data() + cuda.size(), name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) return cuda::make(index);
  }
  return base::fail(base::Code::invalid_argument, fmt::format("a device called '{}'; it is cuda:N or emulated", name));
}

}  // namespace

Result<std::shared_ptr<Device>> open(std::string_view name) {
  static std::mutex mutex;
  static auto* const devices = new std::map<std::string, std::weak_ptr<Device>, std::less<>>;  // as long as the process
  const std::scoped_lock lock(mutex);
  if (const auto known = devices->find(name); known != devices->end()) {
    if (auto device = known->second.lock()) return device;
  }
  auto device = LACUNA_TRY(make(name));
  devices->insert_or_assign(std::string(name), device);
  return device;
}

Result<std::string> device_of(const void* address) {
  if (emulated::owns(address)) return std::string("emulated");
  return fmt::format("cuda:{}", LACUNA_TRY(cuda::ordinal_of(address)));
}

Result<std::vector<Card>> cards() { return cuda::cards(); }

}  // namespace lacuna::device
