#include <fmt/format.h>

#include <array>
#include <cstring>

#include "lacuna/device/cuda/cuda.hpp"
#include "lacuna/device/cuda/driver.hpp"
#include "lacuna/device/cuda/images.hpp"
#include "lacuna/device/launched.hpp"

namespace lacuna::device::cuda {
namespace {

using base::Code;
using base::fail;

Code code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return Code::out_of_memory;
    case CUDA_ERROR_INVALID_VALUE: return Code::invalid_argument;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: return Code::unsupported;
    default: return Code::transfer;
  }
}

Result<void> check(const Driver& driver, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return {};
  return fail(code_of(result), fmt::format("{}: {}", what, driver.text(result)));
}

// The device's context is the thread's for as long as this lives.
class Current {
 public:
  Current(const Driver& driver, CUcontext context) : driver_(driver) { (void)driver.push_context(context); }
  ~Current() {
    CUcontext popped = nullptr;
    (void)driver_.pop_context(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Driver& driver_;
};

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

Result<Card> card_of(const Driver& driver, int index) {
  CUdevice device{};
  LACUNA_TRY(check(driver, driver.device_get(&device, index), "cuDeviceGet"));
  Card card;
  card.name = fmt::format("cuda:{}", index);
  std::array<char, 256> model{};
  LACUNA_TRY(check(driver, driver.device_name(model.data(), static_cast<int>(model.size()), device), "cuDeviceGetName"));
  card.model = model.data();
  int version = 0;
  LACUNA_TRY(check(driver, driver.driver_version(&version), "cuDriverGetVersion"));
  card.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  std::size_t memory = 0;
  LACUNA_TRY(check(driver, driver.device_memory(&memory, device), "cuDeviceTotalMem"));
  card.memory_bytes = static_cast<std::int64_t>(memory);
  int cache = 0;
  LACUNA_TRY(
      check(driver, driver.device_attribute(&card.processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device), "cuDeviceGetAttribute"));
  LACUNA_TRY(check(driver, driver.device_attribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device), "cuDeviceGetAttribute"));
  card.cache_bytes = cache;
  return card;
}

class Cuda final : public Device {
 public:
  Cuda(const Driver& driver, Card card) : driver_(driver), card_(std::move(card)) {}
  ~Cuda() override {
    if (context_ == nullptr) return;
    if (module_ != nullptr) {
      const Current current(driver_, context_);
      (void)driver_.context_synchronize();
      (void)driver_.unload_module(module_);
    }
    (void)driver_.release_context(device_);
  }

  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;

  Result<void> open(int index) {
    LACUNA_TRY(check(driver_, driver_.device_get(&device_, index), "cuDeviceGet"));
    LACUNA_TRY(check(driver_, driver_.retain_context(&context_, device_), "cuDevicePrimaryCtxRetain"));
    const Current current(driver_, context_);
    LACUNA_TRY(load());
    constexpr std::array names{"lacuna_words", "lacuna_bytes", "lacuna_windows", "lacuna_squares"};
    static_assert(names.size() == kernel::kWays);
    for (std::size_t way = 0; way < names.size(); ++way) {
      const std::string name = names[way];
      LACUNA_TRY(check(driver_, driver_.module_function(&kernels_[way].few, module_, name.c_str()), names[way]));
      LACUNA_TRY(check(driver_, driver_.module_function(&kernels_[way].many, module_, (name + "_many").c_str()), names[way]));
    }
    return {};
  }

  [[nodiscard]] const Card& card() const override { return card_; }

  Result<void*> allocate(std::int64_t bytes) override {
    const Current current(driver_, context_);
    CUdeviceptr memory = 0;
    LACUNA_TRY(check(driver_, driver_.allocate(&memory, static_cast<std::size_t>(bytes)),
                     fmt::format("{} bytes of {}", bytes, card_.name).c_str()));
    return reinterpret_cast<void*>(memory);
  }
  Result<void*> allocate_pinned(std::int64_t bytes) override {
    const Current current(driver_, context_);
    void* memory = nullptr;
    LACUNA_TRY(check(driver_,
                     driver_.allocate_host(&memory, static_cast<std::size_t>(bytes), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                     fmt::format("{} bytes of pinned memory", bytes).c_str()));
    return memory;
  }
  void free(void* memory) noexcept override {
    if (memory == nullptr) return;
    const Current current(driver_, context_);
    (void)driver_.context_synchronize();
    if (owns(memory))
      (void)driver_.free(address(memory));
    else
      (void)driver_.free_host(memory);
  }

  Result<void> copy(void* to, const void* from, std::int64_t bytes, Stream stream) override {
    const Current current(driver_, context_);
    return check(driver_, driver_.copy(address(to), address(from), static_cast<std::size_t>(bytes), static_cast<CUstream>(stream)),
                 "cuMemcpyAsync");
  }
  Result<void> fill(void* to, std::uint8_t value, std::int64_t bytes, Stream stream) override {
    const Current current(driver_, context_);
    return check(driver_, driver_.fill(address(to), value, static_cast<std::size_t>(bytes), static_cast<CUstream>(stream)),
                 "cuMemsetD8Async");
  }
  Result<void> copy_rows(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch, std::int64_t width, std::int64_t rows,
                         Stream stream) override {
    const Current current(driver_, context_);
    CUDA_MEMCPY2D copy;
    std::memset(&copy, 0, sizeof copy);
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = address(from);
    copy.srcPitch = static_cast<std::size_t>(from_pitch);
    copy.dstDevice = address(to);
    copy.dstPitch = static_cast<std::size_t>(to_pitch);
    copy.WidthInBytes = static_cast<std::size_t>(width);
    copy.Height = static_cast<std::size_t>(rows);
    return check(driver_, driver_.copy_2d(&copy, static_cast<CUstream>(stream)), "cuMemcpy2DAsync");
  }
  Result<void> launch(const Launched& launched, Stream stream) override {
    const Current current(driver_, context_);
    const Kernels& kernels = kernels_[static_cast<std::size_t>(launched.way)];
    void* parameters[] = {const_cast<kernel::Launch*>(&launched.launch)};  // which are copied
    return check(driver_,
                 driver_.launch(launched.many() ? kernels.many : kernels.few, launched.launch.tiles, 1, 1, kernel::kThreads, 1, 1, 0,
                                static_cast<CUstream>(stream), parameters, nullptr),
                 "cuLaunchKernel");
  }

  Result<Stream> create_stream() override {
    const Current current(driver_, context_);
    CUstream stream = nullptr;
    LACUNA_TRY(check(driver_, driver_.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
    return stream;
  }
  void destroy_stream(Stream stream) noexcept override {
    const Current current(driver_, context_);
    (void)driver_.stream_destroy(static_cast<CUstream>(stream));
  }
  Result<void> wait(Stream stream) override {
    const Current current(driver_, context_);
    return check(driver_, driver_.stream_synchronize(static_cast<CUstream>(stream)), "cuStreamSynchronize");
  }

  Result<Event> create_event() override {
    const Current current(driver_, context_);
    CUevent event = nullptr;
    LACUNA_TRY(check(driver_, driver_.event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate"));
    return event;
  }
  void destroy_event(Event event) noexcept override {
    const Current current(driver_, context_);
    (void)driver_.event_destroy(static_cast<CUevent>(event));
  }
  Result<void> record(Event event, Stream stream) override {
    const Current current(driver_, context_);
    return check(driver_, driver_.event_record(static_cast<CUevent>(event), static_cast<CUstream>(stream)), "cuEventRecord");
  }
  Result<void> wait_in_stream(Event event, Stream stream) override {
    const Current current(driver_, context_);
    return check(driver_, driver_.stream_wait_event(static_cast<CUstream>(stream), static_cast<CUevent>(event), 0), "cuStreamWaitEvent");
  }
  Result<double> elapsed_us(Event begin, Event end) override {
    const Current current(driver_, context_);
    LACUNA_TRY(check(driver_, driver_.event_synchronize(static_cast<CUevent>(end)), "cuEventSynchronize"));
    float milliseconds = 0;
    LACUNA_TRY(
        check(driver_, driver_.event_elapsed(&milliseconds, static_cast<CUevent>(begin), static_cast<CUevent>(end)), "cuEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e3;
  }

  Result<Share> share(void* memory) override {
    const Current current(driver_, context_);
    CUipcMemHandle handle{};
    LACUNA_TRY(check(driver_, driver_.ipc_handle(&handle, address(memory)), "cuIpcGetMemHandle"));
    Share share{};
    static_assert(sizeof handle <= sizeof share);
    std::memcpy(share.data(), &handle, sizeof handle);
    return share;
  }
  Result<void*> attach(const Share& share) override {
    const Current current(driver_, context_);
    CUipcMemHandle handle{};
    std::memcpy(&handle, share.data(), sizeof handle);
    CUdeviceptr memory = 0;
    LACUNA_TRY(check(driver_, driver_.ipc_open(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle"));
    return reinterpret_cast<void*>(memory);
  }
  void detach(void* memory) noexcept override {
    const Current current(driver_, context_);
    (void)driver_.ipc_close(address(memory));
  }

  [[nodiscard]] bool owns(const void* memory) const override {
    const Current current(driver_, context_);
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    return driver_.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(memory)) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
  }

 private:
  // For one way: parts that travel with a launch, and parts that lie in the device's memory.
  struct Kernels {
    CUfunction few, many;
  };

  // Machine code of the GPU's own generation, else PTX, which the driver compiles.
  Result<void> load() {
    int generation = 0;
    LACUNA_TRY(check(driver_, driver_.device_attribute(&generation, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_),
                     "cuDeviceGetAttribute"));
    const Image* chosen = nullptr;
    for (const Image& image : images()) {
      const bool runs = image.ptx ? image.architecture / 10 <= generation : image.architecture / 10 == generation;
      if (runs && (chosen == nullptr || chosen->ptx)) chosen = &image;
    }
    if (chosen == nullptr)
      return fail(Code::unsupported,
                  fmt::format("{} ({}) is of compute capability {}; the kernels need 8.0 or newer", card_.name, card_.model, generation));
    return check(
        driver_, driver_.load_module(&module_, chosen->code.data),
        fmt::format("the kernels for {} ({}, driver of CUDA {}): cuModuleLoadData", card_.name, card_.model, card_.driver).c_str());
  }

  const Driver& driver_;
  Card card_;
  CUdevice device_{};
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  std::array<Kernels, kernel::kWays> kernels_{};
};

}  // namespace

Result<std::shared_ptr<Device>> make(int index) {
  const auto& loaded = driver();
  if (!loaded) return std::unexpected(loaded.error());
  int count = 0;
  LACUNA_TRY(check(*loaded, loaded->device_count(&count), "cuDeviceGetCount"));
  if (index < 0 || index >= count) return fail(Code::invalid_argument, fmt::format("cuda:{}; this process sees {} GPUs", index, count));
  auto device = std::make_shared<Cuda>(*loaded, LACUNA_TRY(card_of(*loaded, index)));
  LACUNA_TRY(device->open(index));
  return device;
}

Result<std::vector<Card>> cards() {
  const auto& loaded = driver();
  if (!loaded) return std::unexpected(loaded.error());
  int count = 0;
  LACUNA_TRY(check(*loaded, loaded->device_count(&count), "cuDeviceGetCount"));
  std::vector<Card> found;
  found.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) found.push_back(LACUNA_TRY(card_of(*loaded, i)));
  return found;
}

Result<int> ordinal_of(const void* memory) {
  const auto& loaded = driver();
  if (!loaded) return std::unexpected(loaded.error());
  int ordinal = 0;
  LACUNA_TRY(check(*loaded, loaded->pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(memory)),
                   fmt::format("{} is no memory that CUDA knows", memory).c_str()));
  return ordinal;
}

}  // namespace lacuna::device::cuda
