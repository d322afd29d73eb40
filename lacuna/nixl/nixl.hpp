// nixl: a plug-in for NIXL (libplugin_LACUNA.so): memory of this process that other agents read and write, described by
// lists of pieces. It hides NIXL, and that transfers are puts and gets of layouts.
//
//   NIXL ── lists of descriptors ──▶ Engine ── Parts: a layout for each side ──▶ Connection ── put, get ──▶ ranks
//                                      │                                             ▲
//                                      └── Agent: listens, connects, moves all on ───┘
//
//   interface    NIXL's side of the edge: its table of functions, its lists
//   memory       what is registered here, and what other agents have registered
//   parts        lists of descriptors as layouts: strides are found again (nests: in one pass where lists are regular)
//   address      what an agent tells others, so that they can connect
//   direct       writes and reads by this end alone, where the NIC reaches the peer's memory
//   estimate     how long a transfer is expected to take, by the guide; and so which way it goes
//   inbox        notifications that wait for the program
//   connection   one other agent: a communicator of two ranks, questions and notifications beside the data
//   attempt      a connection that is being made: calls wait for it a moment at most
//   beginnings   transfers whose peer has not answered yet
//   helpers      threads that do one thing each, whatever that throws
//   agent        all connections of one agent, its listener and its thread
//   engine       the class that NIXL calls
//
// The agent that begins a transfer connects to the one that has the memory; the two connect a second time if the other
// one begins transfers too. So no two agents meet half way. Puts and gets need the target's CPU: a thread of each agent
// moves things on when its program is not in calls.
//
// No call waits longer than a moment (Settings::wait_s) for a peer: what it waits for goes on, and a peer that is
// silent for long makes its transfers fail.
//
// Everything that a peer says may be false. What knows the address of an agent may connect to it; what names a
// registration by its token may read and write the memory, and no other. An agent tells both by its metadata.
#pragma once

#include <string>

#include "lacuna/base/base.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::nixl {

using base::Result;
using layout::Layout;

inline constexpr double kNsPerSecond = 1e9;

/// What a peer said, harmless to a terminal.
inline std::string printable(std::string text) {
  for (char& byte : text)
    if (byte < ' ' || byte > '~') byte = '?';
  return text;
}

/// What a program gives to createBackend().
struct Settings {
  /// As nic::open(); empty: LACUNA_NIC; or else "local" on one machine, and what there is between two
  std::string nic;
  std::string host;                 ///< where other machines reach this agent; empty: at all addresses of this one
  double timeout_s = 10;            ///< of silence, until what waits for a peer fails
  double wait_s = 0.2;              ///< that one call waits for a peer, at most; what it began goes on
  std::int64_t connections = 1024;  ///< of others to this agent, at most
};

}  // namespace lacuna::nixl
