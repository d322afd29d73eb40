// lacuna::Device: layouts of a GPU's memory, moved by the GPU. Include lacuna.hpp.
#ifndef LACUNA_DEVICE_HPP
#define LACUNA_DEVICE_HPP

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "error.hpp"
#include "layout.hpp"

namespace lacuna {

/// Two layouts of one size, the second of which is written.
struct LayoutPair {
  const Layout* src;
  const Layout* dst;
};

/// Moves of some pairs of layouts by one launch, which a CUDA graph can capture. Its device outlives it.
class DevicePlan {
 public:
  explicit DevicePlan(lacuna_device_plan* handle, std::size_t pairs) : handle_(handle), pairs_(pairs) {}
  /// As many addresses as pairs. Does not wait. Errors: INVALID_ARGUMENT.
  void move(std::span<const void* const> src_bases, std::span<void* const> dst_bases, void* stream = nullptr) {
    if (src_bases.size() != pairs_ || dst_bases.size() != pairs_)
      detail::refuse("move: as many addresses as the plan has pairs are needed");
    detail::check(lacuna_device_plan_move(handle_.get(), src_bases.data(), dst_bases.data(), stream));
  }
  /// A line for each part.
  [[nodiscard]] std::string describe() const {
    return detail::text_of([this](char* text, std::size_t size) { return lacuna_device_plan_describe(handle_.get(), text, size); });
  }

 private:
  std::unique_ptr<lacuna_device_plan, detail::Free> handle_;
  std::size_t pairs_;
};

/// Belongs to one thread at a time. Streams are cudaStream_ts; nullptr is the default stream.
class Device {
 public:
  /// "cuda:0", or "emulated": the same kernels on the CPU, for tests. Errors: UNSUPPORTED (the message says what to
  /// do), INVALID_ARGUMENT.
  explicit Device(const std::string& name = "cuda:0") {
    lacuna_device* device = nullptr;
    detail::check(lacuna_device_open(name.c_str(), &device));
    handle_.reset(device);
  }
  /// Moves `src` into `dst`, after what the stream holds. Errors: INVALID_ARGUMENT (the sizes differ; dst overlaps
  /// itself), LIMIT, OUT_OF_MEMORY.
  void move(const Layout& src, const void* src_base, const Layout& dst, void* dst_base, void* stream = nullptr) {
    detail::check(lacuna_device_move(handle_.get(), src.get(), src_base, dst.get(), dst_base, stream));
  }
  /// At most 64 pairs. alignment: the power of two, 1 to 16, that divides all addresses that the plan will be given.
  /// Errors: as move().
  [[nodiscard]] DevicePlan plan(std::span<const LayoutPair> pairs, int alignment = 16) {
    std::vector<const lacuna_layout*> src;
    std::vector<const lacuna_layout*> dst;
    for (const LayoutPair& pair : pairs) {
      src.push_back(pair.src->get());
      dst.push_back(pair.dst->get());
    }
    lacuna_device_plan* made = nullptr;
    detail::check(lacuna_device_plan_make(handle_.get(), static_cast<int>(pairs.size()), src.data(), dst.data(), alignment, &made));
    return DevicePlan(made, pairs.size());
  }

 private:
  std::unique_ptr<lacuna_device, detail::Free> handle_;
};

}  // namespace lacuna

#endif
