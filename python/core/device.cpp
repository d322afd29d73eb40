// Device memory, for Python: what lacuna/device.py is made of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <mutex>

#include "core.hpp"
#include "lacuna/device/device.hpp"

namespace lacuna::python {
namespace {

using device::Device;
using layout::Layout;

// Memory of a device, for as long as this lives.
class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<Device> device, std::int64_t bytes) : device_(std::move(device)), bytes_(bytes) {
    if (bytes < 1) throw nb::value_error("memory of a device needs at least 1 byte");
    memory_ = value_or_raise(device_->allocate(bytes));
  }
  ~DeviceMemory() {
    const nb::gil_scoped_release unlocked;  // it waits for the device, which may wait for Python
    device_->free(memory_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] nb::bytes read() const {
    std::string copy(static_cast<std::size_t>(bytes_), '\0');
    copy_and_wait(copy.data(), memory_);
    return nb::bytes(copy.data(), copy.size());
  }
  void write(const nb::bytes& data) {
    if (static_cast<std::int64_t>(data.size()) != bytes_) throw nb::value_error("as many bytes as the memory has are needed");
    copy_and_wait(memory_, data.c_str());
  }

 private:
  void copy_and_wait(void* to, const void* from) const {
    const auto done = [&]() -> Result<void> {
      const nb::gil_scoped_release unlocked;
      LACUNA_TRY(device_->copy(to, from, bytes_, nullptr));
      return device_->wait(nullptr);
    }();
    value_or_raise(done);
  }

  std::shared_ptr<Device> device_;
  std::int64_t bytes_;
  void* memory_ = nullptr;
};

class Opened {
 public:
  explicit Opened(const std::string& name) : copies_(value_or_raise(device::open(name))) {}
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return copies_.device(); }
  void move(const Layout& source, std::uintptr_t from, const Layout& target, std::uintptr_t to, std::uintptr_t stream) {
    const auto moved = [&] {
      const nb::gil_scoped_release unlocked;  // a plan that is made waits for the device
      const std::scoped_lock lock(mutex_);
      return copies_.move({source, target}, {reinterpret_cast<const void*>(from), reinterpret_cast<void*>(to)},
                          reinterpret_cast<void*>(stream));
    }();
    value_or_raise(moved);
  }
  void wait(std::uintptr_t stream) const {
    const auto waited = [&] {
      const nb::gil_scoped_release unlocked;
      return device()->wait(reinterpret_cast<void*>(stream));
    }();
    value_or_raise(waited);
  }

 private:
  std::mutex mutex_;
  device::Copies copies_;
};

nb::dict card_dict(const device::Card& card) {
  nb::dict out;
  out["name"] = card.name;
  out["model"] = card.model;
  out["driver"] = card.driver;
  out["processors"] = card.processors;
  out["memory_bytes"] = card.memory_bytes;
  return out;
}

}  // namespace

void bind_device(nb::module_& m) {
  nb::class_<DeviceMemory>(m, "DeviceMemory", "Bytes of a device's memory, freed with this object.")
      .def(
          "__init__", [](DeviceMemory* self, const Opened& device, std::int64_t bytes) { new (self) DeviceMemory(device.device(), bytes); },
          "device"_a, "bytes"_a)
      .def_prop_ro("address", &DeviceMemory::address)
      .def("__len__", &DeviceMemory::bytes)
      .def("read", &DeviceMemory::read, "A copy of the bytes; waits for the default stream.")
      .def("write", &DeviceMemory::write, "data"_a, "Copies bytes there, as many as there are; waits for the default stream.");
  nb::class_<Opened>(m, "Device", "A GPU, or an emulation of one. Errors: ValueError says what is missing.")
      .def(nb::init<const std::string&>(), "name"_a, "\"cuda:0\", or \"emulated\".")
      .def_prop_ro(
          "card", [](const Opened& device) { return card_dict(device.device()->card()); }, "What there is to know of the device.")
      .def("move", &Opened::move, "source"_a, "source_address"_a, "target"_a, "target_address"_a, "stream"_a = 0,
           "Moves one layout at an address into another one, on a stream (a CUDA stream's address). The addresses are not checked.")
      .def("wait", &Opened::wait, "stream"_a = 0, "Until the stream has done what it holds.");
  m.def(
      "device_of", [](std::uintptr_t address) { return value_or_raise(device::device_of(reinterpret_cast<const void*>(address))); },
      "address"_a, "The name of the device whose memory an address is. Raises ValueError if it is no device's.");
  m.def(
      "device_cards",
      [] {
        nb::list out;
        for (const device::Card& card : value_or_raise(device::cards())) out.append(card_dict(card));
        return out;
      },
      "The GPUs of this machine. Raises ValueError, which says why there are none.");
}

}  // namespace lacuna::python
