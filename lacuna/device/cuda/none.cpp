// In a build without cuda.h and NVRTC: says so.
#include "lacuna/device/cuda/cuda.hpp"

namespace lacuna::device::cuda {
namespace {

constexpr const char* kWhy =
    "this Lacuna was built without support for GPUs: the build found no cuda.h and no NVRTC (pip install -r requirements/build.txt, and "
    "build again)";

}  // namespace

Result<std::shared_ptr<Device>> make(int /*index*/) { return base::fail(base::Code::unsupported, kWhy); }
Result<int> ordinal_of(const void* /*memory*/) { return base::fail(base::Code::unsupported, kWhy); }
Result<std::vector<Card>> cards() { return base::fail(base::Code::unsupported, kWhy); }

}  // namespace lacuna::device::cuda
