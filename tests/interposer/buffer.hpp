// Memory of a test's program: the host's, or that of the emulated device, which the CPU cannot touch.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "lacuna/device/emulated/allocations.hpp"

namespace lacuna::test::fake {

/// What a program does that begins to use a GPU: the driver of the emulated one is there from now on. Nothing, or what
/// is wrong.
std::string load_driver();

template <class T>
class Buffer {
 public:
  Buffer(bool on_device, std::vector<T> first) : host_(std::move(first)) {
    if (!on_device) return;
    device_ = Allocations::all().take(bytes()).value();
    std::memcpy(Allocations::all().reached(device_, bytes()), host_.data(), host_.size() * sizeof(T));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (device_ != nullptr) Allocations::all().give_back(device_);
  }
  void* data() { return device_ != nullptr ? device_ : host_.data(); }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> made = host_;
    if (device_ != nullptr) std::memcpy(made.data(), Allocations::all().reached(device_, bytes()), host_.size() * sizeof(T));
    return made;
  }

 private:
  using Allocations = device::emulated::Allocations;
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(host_.size() * sizeof(T)); }
  std::vector<T> host_;
  void* device_ = nullptr;
};

}  // namespace lacuna::test::fake
