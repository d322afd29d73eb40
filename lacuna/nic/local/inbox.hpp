// The inbox of a queue pair: shared memory that its owner created and its one peer writes into.
//
// Counters only grow; each has one writer and a cache line of its own. The owner compares every counter that the peer
// writes with its own private count before it believes it.
#pragma once

#include <array>
#include <atomic>

#include "lacuna/nic/local/shared_memory.hpp"

namespace lacuna::nic::local {

inline constexpr int kMaxSge = 32;       // entries of a posted receive
inline constexpr int kRecvDepth = 1024;  // posted receives
inline constexpr int kSlots = 8;
inline constexpr std::size_t kSlotBytes = 32 << 10;  // docs/notes/measurements.md has the sweep

struct alignas(64) Counter {
  std::atomic<std::uint64_t> value;
};

// A receive that the owner posted, for peers that reach its memory themselves.
struct PostedRecv {
  std::uint32_t sges;
  std::array<Sge, kMaxSge> sg_list;
};

// How such a receive ended.
struct RecvDone {
  std::uint32_t status;
  std::uint32_t opcode;  // recv or recv_imm
  std::uint64_t byte_len;
  std::uint32_t imm_data;
};

// What a slot holds: a part of one work request.
struct SlotHead {
  std::uint32_t opcode;  // send, write, write_imm, or read: then no bytes, but the wish for them
  std::uint32_t length;  // bytes in this slot, at most kSlotBytes
  std::uint32_t last;    // 1 in the request's last slot
  std::uint32_t rkey;    // all but send
  std::uint64_t addr;    // write: where this slot's bytes go; read: where they come from
  std::uint64_t total;   // bytes of the whole request
  std::uint32_t imm_data;
};

struct Slot {
  alignas(64) SlotHead head;
  alignas(64) std::array<std::byte, kSlotBytes> bytes;
};

// What was read travels back beside the requests: a request that waits for a receive must not hold it up.
struct Reply {
  alignas(64) std::uint32_t length;
  alignas(64) std::array<std::byte, kSlotBytes> bytes;
};

struct Inbox {
  // Written by the owner.
  Counter posted;    // receives posted
  Counter consumed;  // slots taken out
  Counter taken;     // replies taken out
  Counter fault;     // 0, or what stopped the owner: (number of the slot + 1) << 8 | Status
  Counter closed;    // 1 once the owner's queue pair is gone or in error
  Counter gone;      // 1 once it is gone: the owner's CPU reaches nothing of the peer's any more
  // Written by the peer.
  Counter completed;  // receives completed
  Counter filled;     // slots filled
  Counter replied;    // replies filled
  Counter access;     // odd while the peer checks keys and copies: the epoch

  std::array<PostedRecv, kRecvDepth> recvs;
  std::array<RecvDone, kRecvDepth> dones;
  std::array<Slot, kSlots> slots;
  std::array<Reply, kSlots> replies;
};

inline Inbox& inbox(const SharedMemory& memory) { return *reinterpret_cast<Inbox*>(memory.data()); }

}  // namespace lacuna::nic::local
