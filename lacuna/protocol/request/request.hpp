// request: what a communicator keeps of a message, and of each peer, and how a message ends. It hides where requests
// live, and what has to be given back when a peer is lost.
//
//   begun ── waiting (for a message, room, an answer) ── moving ── done ── ended by the program: back to the pool
//               └──────────────────── the peer is lost ─────┴──▶ done, with an error
//
//   requests.hpp     a send or receive, a message that no receive took, and the pool
//   peer.hpp         what is kept of each peer
//   local_rank.hpp   what all parts of a communicator share at this rank, and how they speak to a peer
//   completion.hpp   how messages, and peers, end
#pragma once

#include "lacuna/protocol/request/completion.hpp"
#include "lacuna/protocol/request/local_rank.hpp"
#include "lacuna/protocol/request/peer.hpp"
#include "lacuna/protocol/request/requests.hpp"
