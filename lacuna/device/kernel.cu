// kernel.cu: the entry points of kernel.hpp for GPUs: for each way, and for where the parts lie. A block of threads
// takes one tile.
#include "lacuna/device/kernel.hpp"

using namespace lacuna::device::kernel;

namespace {

template <Way way>
__device__ __forceinline__ void move_part(const Launch& launch, const Part& part) {
  const Transfer bases = launch.transfers[part.transfer];
  if constexpr (way == Way::squares) {
    __shared__ alignas(16) u8 shared[kSharedBytes];
    const Square square = square_of(launch.tables, bases, part, blockIdx.x - part.first_tile);
    read_any_square(part, square, shared, threadIdx.x);
    __syncthreads();
    write_any_square(part, square, shared, threadIdx.x);
  } else {
    move_tile<way>(launch.tables, bases, part, blockIdx.x, threadIdx.x);
  }
}

// The parts travel with the launch.
template <Way way>
__device__ __forceinline__ void move_few(const Launch& launch) {
  move_part<way>(launch, launch.part[launch.parts == 1 ? 0 : part_of_tile(launch.part, launch.parts, blockIdx.x)]);
}

// They lie in the device's memory: the block fetches its own at once.
template <Way way>
__device__ __forceinline__ void move_many(const Launch& launch) {
  __shared__ Part part;
  static_assert(sizeof part % 4 == 0 && sizeof part / 4 <= kThreads);
  const u32 owner = launch.owners != nullptr ? launch.owners[blockIdx.x] : part_of_tile(launch.more, launch.parts, blockIdx.x);
  if (threadIdx.x < sizeof part / 4) reinterpret_cast<u32*>(&part)[threadIdx.x] = reinterpret_cast<const u32*>(launch.more + owner)[threadIdx.x];
  __syncthreads();
  move_part<way>(launch, part);
}

}  // namespace

// The second bound: blocks of threads on a processor at a time, which limits registers.
#define LACUNA_ENTRIES(way, blocks)                                                                                                                 \
  extern "C" __global__ void __launch_bounds__(kThreads, blocks) lacuna_##way(const __grid_constant__ Launch launch) { move_few<Way::way>(launch); } \
  extern "C" __global__ void __launch_bounds__(kThreads, blocks) lacuna_##way##_many(const __grid_constant__ Launch launch) { move_many<Way::way>(launch); }
LACUNA_ENTRIES(words, 5)
LACUNA_ENTRIES(bytes, 5)
LACUNA_ENTRIES(windows, 5)
LACUNA_ENTRIES(squares, 5)
