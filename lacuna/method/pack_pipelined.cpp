// pack_pipelined: pack chunk k + 1 while chunk k flies and chunk k - 1 is unpacked (the pipeline protocol of seed 004, applied to packing).
#include "lacuna/method/packed.hpp"

namespace lacuna::method {
namespace {
// 32 KB: the staging of both ends stays in a core's own cache (docs/measurements.md has the sweep); four in flight cover the hand-over.
constexpr Chunking kChunks{32 << 10, 4};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(role, endpoint, transfer, memory, kChunks);
}

}  // namespace

extern const Method kPackPipelined{.name = "pack_pipelined",
                                   .summary = "the CPU packs a chunk while others fly and are unpacked",
                                   .notifies = kTwoSided,
                                   .initiator = Role::sender,
                                   .exposes = Exposes::nothing,
                                   .indirect_keys = false,
                                   .make = &make};

}  // namespace lacuna::method
