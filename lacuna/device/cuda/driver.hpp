// driver: CUDA's driver, loaded when it is asked for. A program that uses no GPU needs none of it.
#pragma once

#include <cuda.h>

#include <string>

#include "lacuna/base/base.hpp"

namespace lacuna::device::cuda {

/// The functions that are used, of driver 525 (CUDA 12.0) and newer.
struct Driver {
  decltype(&cuInit) init;
  decltype(&cuDriverGetVersion) driver_version;
  decltype(&cuGetErrorName) error_name;
  decltype(&cuGetErrorString) error_string;
  decltype(&cuDeviceGetCount) device_count;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_name;
  decltype(&cuDeviceTotalMem) device_memory;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDevicePrimaryCtxRetain) retain_context;
  decltype(&cuDevicePrimaryCtxRelease) release_context;
  decltype(&cuCtxPushCurrent) push_context;
  decltype(&cuCtxPopCurrent) pop_context;
  decltype(&cuCtxSynchronize) context_synchronize;
  decltype(&cuModuleLoadData) load_module;
  decltype(&cuModuleUnload) unload_module;
  decltype(&cuModuleGetFunction) module_function;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuMemAlloc) allocate;
  decltype(&cuMemFree) free;
  decltype(&cuMemHostAlloc) allocate_host;
  decltype(&cuMemFreeHost) free_host;
  decltype(&cuMemcpyAsync) copy;
  decltype(&cuMemcpy2DAsync) copy_2d;
  decltype(&cuMemsetD8Async) fill;
  decltype(&cuStreamCreate) stream_create;
  decltype(&cuStreamDestroy) stream_destroy;
  decltype(&cuStreamSynchronize) stream_synchronize;
  decltype(&cuStreamWaitEvent) stream_wait_event;
  decltype(&cuEventCreate) event_create;
  decltype(&cuEventDestroy) event_destroy;
  decltype(&cuEventRecord) event_record;
  decltype(&cuEventSynchronize) event_synchronize;
  decltype(&cuEventElapsedTime) event_elapsed;
  decltype(&cuIpcGetMemHandle) ipc_handle;
  decltype(&cuIpcOpenMemHandle) ipc_open;
  decltype(&cuIpcCloseMemHandle) ipc_close;
  decltype(&cuPointerGetAttribute) pointer_attribute;

  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  [[nodiscard]] std::string text(CUresult result) const;
};

/// The driver, initialised. Errors: unsupported (no driver, no GPU, a function that is missing).
[[nodiscard]] const base::Result<Driver>& driver();

}  // namespace lacuna::device::cuda
