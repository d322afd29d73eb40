// kernel.cu: the entry points of kernel.hpp for GPUs: for each way, and for where the parts lie. A block of threads takes one tile.
#include "lacuna/device/kernel.hpp"

using namespace lacuna::device::kernel;

namespace {

template <Way way>
__device__ __forceinline__ void move_part(const u64* tables, const Transfer& bases, const Part& part, u32 tile) {
  if constexpr (way == Way::squares) {
    __shared__ alignas(16) u8 shared[kSharedBytes];
    const Square square = square_of(tables, bases, part, tile - part.first_tile);
    read_any_square(part, square, shared, threadIdx.x);
    __syncthreads();
    write_any_square(part, square, shared, threadIdx.x);
  } else {
    move_tile<way>(tables, bases, part, tile, threadIdx.x);
  }
}

// The parts travel with the launch.
template <Way way, class Launched>
__device__ __forceinline__ void move_inline(const Launched& launch) {
  const u32 part = launch.parts == 1 ? 0 : part_of_tile(launch.part, launch.parts, blockIdx.x);
  move_part<way>(launch.tables, launch.transfers[launch.part[part].transfer], launch.part[part], blockIdx.x);
}

// They lie in the device's memory.
template <Way way>
__device__ __forceinline__ void move_many(const Launch& launch) {
  const Part& part = launch.more[part_of_tile(launch.more, launch.parts, blockIdx.x)];
  move_part<way>(launch.tables, launch.transfers[part.transfer], part, blockIdx.x);
}

}  // namespace

#define LACUNA_ENTRY extern "C" __global__ void __launch_bounds__(kThreads, 4)
LACUNA_ENTRY lacuna_words(const __grid_constant__ Launch launch) { move_inline<Way::words>(launch); }
LACUNA_ENTRY lacuna_words_large(const __grid_constant__ LargeLaunch launch) { move_inline<Way::words>(launch); }
LACUNA_ENTRY lacuna_words_many(const __grid_constant__ Launch launch) { move_many<Way::words>(launch); }
LACUNA_ENTRY lacuna_windows(const __grid_constant__ Launch launch) { move_inline<Way::windows>(launch); }
LACUNA_ENTRY lacuna_windows_many(const __grid_constant__ Launch launch) { move_many<Way::windows>(launch); }
LACUNA_ENTRY lacuna_squares(const __grid_constant__ Launch launch) { move_inline<Way::squares>(launch); }
LACUNA_ENTRY lacuna_squares_many(const __grid_constant__ Launch launch) { move_many<Way::squares>(launch); }
