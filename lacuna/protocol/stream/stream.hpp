// stream: a message between two ranks whose CPUs share memory. It hides the rings of memory, how their bytes are
// written, and which way is faster.
//
// The sender packs the message, chunk by chunk, into a ring of its own memory, which the receiver's CPU reaches. The
// sender begins at once, whether or not a receive is posted, and goes on as the receiver empties chunks:
//
//   sender    pack 0 │ announce │ pack 1 │ pack 2 │ pack 3 │ ...            `filled` counts its chunks,
//   receiver                    │ match  │unpack 0│unpack 1│ ...            `emptied` those of the receiver
//
// So both CPUs copy at the same time, and nothing is copied except by pack and unpack. There are few rings. A message
// that finds no free ring is announced, and gets a ring once it is matched; one ring is kept for matched messages, so
// that unmatched ones cannot take all.
//
//   stream_ring.hpp   the memory of rings, as both ends see them
//   ring_pool.hpp     all rings of this rank, within one bound, lent to the peers that are sent to
//   stream_rings.hpp  which ring a message to a peer gets
//   out_stream.hpp    the sender's end of one message
//   in_stream.hpp     the receiver's end
//   direct_copy.hpp   one copy between the two processes' memory instead, by both CPUs at once
//   direct_layouts.hpp  the two layouts of such a copy
//   stores.hpp        whether the sender's stores leave the bytes in its caches
//   transits.hpp      which of wide ring, narrow ring and direct copy a message takes
//
// This room knows no request: message/stream_transfers.hpp moves requests by it.
#pragma once

#include "lacuna/protocol/stream/direct_copy.hpp"
#include "lacuna/protocol/stream/direct_layouts.hpp"
#include "lacuna/protocol/stream/in_stream.hpp"
#include "lacuna/protocol/stream/out_stream.hpp"
#include "lacuna/protocol/stream/stores.hpp"
#include "lacuna/protocol/stream/stream_ring.hpp"
#include "lacuna/protocol/stream/stream_rings.hpp"
#include "lacuna/protocol/stream/transits.hpp"
