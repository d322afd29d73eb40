// What pack and pack_pipelined share: the stream goes in chunks through a ring of staging slots, packed at one end and
// unpacked at the other. With one chunk it is the plain copy method; with small ones packing, flying and unpacking
// overlap. A side that is contiguous needs no copy and no staging: its own bytes are sent, or received into. Where
// devices move the data the receiver answers each chunk that frees a slot with an empty message, so that no chunk finds
// none.
#pragma once

#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {

struct Chunking {
  std::int64_t bytes;    // of a chunk
  int depth;             // chunks in flight
  int depth_of_devices;  // the same where devices move the data
};

Made make_packed(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Chunking chunking);

}  // namespace lacuna::method
