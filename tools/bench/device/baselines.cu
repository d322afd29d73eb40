// baselines.cu: a kernel as MPI libraries have them, one thread for each element and a 64-bit division for each loop;
// and one that does nothing.
#include "lacuna/device/kernel.hpp"

using namespace lacuna::device::kernel;

namespace {

template <class Word>
__device__ void move_element(const Launch& launch) {
  const Part& part = launch.part[0];
  const u64 element = u64{blockIdx.x} * blockDim.x + threadIdx.x;
  if (element >= part.units) return;
  u64 left = element;
  i64 from = part.from;
  i64 to = part.to;
  for (int l = 0; l < part.levels; ++l) {
    const Level& level = part.level[l];
    const u64 i = left % level.count;
    left /= level.count;
    if (l > 0) {
      from += level.from_places == Places::stride ? static_cast<i64>(i) * level.from
              : level.from_places == Places::list32 ? i64{listed<int>(launch.tables, level.from_list, i)} * level.from
                                                    : listed<i64>(launch.tables, level.from_list, i);
      to += level.to_places == Places::stride ? static_cast<i64>(i) * level.to
            : level.to_places == Places::list32 ? i64{listed<int>(launch.tables, level.to_list, i)} * level.to
                                                : listed<i64>(launch.tables, level.to_list, i);
      continue;
    }
    i64 within = static_cast<i64>(i);
    if (part.has_blocks) {
      const u32 block[1] = {block_of(launch.tables, part, static_cast<u32>(i))};
      i64 places[2][1] = {{from}, {to}};
      const i64 word = sizeof(Word);
      if (part.blocks.from_places != Places::stride) add_places<i64, 1>(launch.tables, part.blocks.from_places, part.blocks.from, word, block, places[0]);
      if (part.blocks.to_places != Places::stride) add_places<i64, 1>(launch.tables, part.blocks.to_places, part.blocks.to, word, block, places[1]);
      from = places[0][0];
      to = places[1][0];
    }
    from += within * static_cast<i64>(sizeof(Word));
    to += within * static_cast<i64>(sizeof(Word));
  }
  *reinterpret_cast<Word*>(launch.transfers[0].to + to) = *reinterpret_cast<const Word*>(launch.transfers[0].from + from);
}

}  // namespace

extern "C" __global__ void naive(const __grid_constant__ Launch launch) {
  switch (launch.part[0].word) {
    case 16:
    case 8: return move_element<u64>(launch);
    case 4: return move_element<u32>(launch);
    case 2: return move_element<u16>(launch);
    default: return move_element<u8>(launch);
  }
}

extern "C" __global__ void nothing() {}
