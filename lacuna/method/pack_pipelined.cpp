// pack_pipelined: pack chunk k + 1 while chunk k flies and chunk k - 1 is unpacked (the pipeline protocol of seed 004, applied to packing).
#include "lacuna/method/methods.hpp"
#include "lacuna/method/packed.hpp"

namespace lacuna::method {
namespace {
// 32 KB: the staging of both ends stays in a core's own cache (docs/measurements.md has the sweep); four in flight cover the hand-over.
constexpr Chunking kChunks{32 << 10, 4};
}  // namespace

Made pack_pipelined_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(Role::sender, endpoint, transfer, memory, kChunks);
}
Made pack_pipelined_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(Role::receiver, endpoint, transfer, memory, kChunks);
}

}  // namespace lacuna::method
