#include "lacuna/device/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace lacuna::device::cuda {
namespace {

constexpr const char* kFile = "libcuda.so.1";

// cuda.h names the second version of some functions by a macro.
#define LACUNA_TEXT_OF(name) #name
#define LACUNA_SYMBOL(name) LACUNA_TEXT_OF(name)

// Never closed: it has threads.
base::Result<Driver> load() {
  void* file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr)
    return base::fail(
        base::Code::unsupported,
        fmt::format("GPUs need NVIDIA's driver ({}); it comes with the package nvidia-driver, or with the machine", dlerror()));
  Driver driver{};
  const char* missing = nullptr;
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(file, name));
    if (function == nullptr) missing = name;
  };
  find(driver.init, LACUNA_SYMBOL(cuInit));
  find(driver.driver_version, LACUNA_SYMBOL(cuDriverGetVersion));
  find(driver.error_name, LACUNA_SYMBOL(cuGetErrorName));
  find(driver.error_string, LACUNA_SYMBOL(cuGetErrorString));
  find(driver.device_count, LACUNA_SYMBOL(cuDeviceGetCount));
  find(driver.device_get, LACUNA_SYMBOL(cuDeviceGet));
  find(driver.device_name, LACUNA_SYMBOL(cuDeviceGetName));
  find(driver.device_memory, LACUNA_SYMBOL(cuDeviceTotalMem));
  find(driver.device_attribute, LACUNA_SYMBOL(cuDeviceGetAttribute));
  find(driver.retain_context, LACUNA_SYMBOL(cuDevicePrimaryCtxRetain));
  find(driver.release_context, LACUNA_SYMBOL(cuDevicePrimaryCtxRelease));
  find(driver.push_context, LACUNA_SYMBOL(cuCtxPushCurrent));
  find(driver.pop_context, LACUNA_SYMBOL(cuCtxPopCurrent));
  find(driver.context_synchronize, LACUNA_SYMBOL(cuCtxSynchronize));
  find(driver.load_module, LACUNA_SYMBOL(cuModuleLoadData));
  find(driver.unload_module, LACUNA_SYMBOL(cuModuleUnload));
  find(driver.module_function, LACUNA_SYMBOL(cuModuleGetFunction));
  find(driver.launch, LACUNA_SYMBOL(cuLaunchKernel));
  find(driver.allocate, LACUNA_SYMBOL(cuMemAlloc));
  find(driver.free, LACUNA_SYMBOL(cuMemFree));
  find(driver.allocate_host, LACUNA_SYMBOL(cuMemHostAlloc));
  find(driver.free_host, LACUNA_SYMBOL(cuMemFreeHost));
  find(driver.copy, LACUNA_SYMBOL(cuMemcpyAsync));
  find(driver.copy_2d, LACUNA_SYMBOL(cuMemcpy2DAsync));
  find(driver.fill, LACUNA_SYMBOL(cuMemsetD8Async));
  find(driver.stream_create, LACUNA_SYMBOL(cuStreamCreate));
  find(driver.stream_destroy, LACUNA_SYMBOL(cuStreamDestroy));
  find(driver.stream_synchronize, LACUNA_SYMBOL(cuStreamSynchronize));
  find(driver.stream_wait_event, LACUNA_SYMBOL(cuStreamWaitEvent));
  find(driver.event_create, LACUNA_SYMBOL(cuEventCreate));
  find(driver.event_destroy, LACUNA_SYMBOL(cuEventDestroy));
  find(driver.event_record, LACUNA_SYMBOL(cuEventRecord));
  find(driver.event_synchronize, LACUNA_SYMBOL(cuEventSynchronize));
  find(driver.event_elapsed, LACUNA_SYMBOL(cuEventElapsedTime));
  find(driver.ipc_handle, LACUNA_SYMBOL(cuIpcGetMemHandle));
  find(driver.ipc_open, LACUNA_SYMBOL(cuIpcOpenMemHandle));
  find(driver.ipc_close, LACUNA_SYMBOL(cuIpcCloseMemHandle));
  find(driver.pointer_attribute, LACUNA_SYMBOL(cuPointerGetAttribute));
  if (missing != nullptr)
    return base::fail(base::Code::unsupported, fmt::format("{} has no {}; Lacuna needs NVIDIA's driver 525 or newer", kFile, missing));
  if (const CUresult result = driver.init(0); result != CUDA_SUCCESS)
    return base::fail(base::Code::unsupported, fmt::format("NVIDIA's driver finds no GPU that it can use: {}", driver.text(result)));
  return driver;
}

}  // namespace

std::string Driver::text(CUresult result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (error_name(result, &name) != CUDA_SUCCESS || error_string(result, &words) != CUDA_SUCCESS)
    return fmt::format("error {}", static_cast<int>(result));
  return fmt::format("{}: {}", name, words);
}

const base::Result<Driver>& driver() {
  static const base::Result<Driver> loaded = load();
  return loaded;
}

}  // namespace lacuna::device::cuda
