// pack_pipelined: pack chunk k + 1 while chunk k flies and chunk k - 1 is unpacked (the pipeline protocol of
// Woodall and others, 2006, applied to packing).
#include <algorithm>

#include "lacuna/method/packed.hpp"

namespace lacuna::method {
namespace {
// 32 KB: the staging of both ends stays in a core's own cache (docs/notes/measurements.md has the sweep); four in
// flight cover the hand-over. Between devices a credit comes back after a round trip: 16 chunks are that of 400 Gb/s,
// with the receiver's copy (docs/design/model.md).
constexpr Chunking kChunks{32 << 10, 4, 16};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(role, endpoint, transfer, memory, kChunks);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  const double chunks = messages_of(cost_items.pair().bytes(), limits, kChunks.bytes);
  const bool one = chunks < 2;
  // The last chunk is seldom a whole one: what the first has to itself is a whole one's share.
  const double turns = std::max(1.0, static_cast<double>(cost_items.pair().bytes()) / static_cast<double>(kChunks.bytes));
  cost_items.pack(one ? CostItems::When::before : CostItems::When::between, turns);
  cost_items.haul({.messages = true,
                   .requests = turns,
                   .doorbells = chunks,
                   .gathers = chunks,
                   .scatters = chunks,
                   .pieces = chunks,
                   .staging = std::min(static_cast<double>(cost_items.pair().bytes()), static_cast<double>(kChunks.bytes) * kChunks.depth),
                   .credits = std::max(0.0, chunks - kChunks.depth_of_devices)});
  cost_items.unpack(one ? CostItems::When::after : CostItems::When::between, turns);
}

}  // namespace

extern const Method kPackPipelined{.name = "pack_pipelined",
                                   .summary = "the CPU packs a chunk while others fly and are unpacked",
                                   .notifies = kTwoSided,
                                   .initiator = Role::sender,
                                   .exposes = Exposes::nothing,
                                   .indirect_keys = false,
                                   .make = &make,
                                   .cost_items = &cost_items};

}  // namespace lacuna::method
