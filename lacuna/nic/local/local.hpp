// local: two processes of one user on one machine (or two threads of one process).
//
//   process A                                              process B
//   arena ─────────── mapped by both, Context::allocate ─────────── arena       shared_memory.hpp, arena.hpp
//   key table ─────── read by the peer before each access ────── key table      keys.hpp
//   inbox (per queue pair): posted receives, receive completions, slots         inbox.hpp
//
// Paths: mapped and kernel run on the initiator alone (direct.cpp, movers.cpp): it reads the target's posted receives
// and keys from shared memory, moves the bytes, and writes the completion. slots (slots.cpp) packs into the target's
// inbox; the target's poll takes it out.
//
// Trust. Both processes run as one user, which the kernel vouches for at connection; such processes may read one
// another's memory anyway, so keys and rights guard against mistakes, not against malice. What *is* guarded against is
// a peer that dies, or that writes nonsense into memory shared with it: every value read from there is copied once and
// checked, and the files are sealed against shrinking, so that no access can fault.
#pragma once

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::local {

Result<std::unique_ptr<nic::Context>> open(const OpenOptions& options);

}  // namespace lacuna::nic::local
