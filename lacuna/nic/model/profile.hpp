// profile: the parameters of a modelled platform, each with its origin, read from a JSON file. docs/design/model.md
// says what each one means.
//
// Times are picoseconds inside, nanoseconds in the file. Rates are femtoseconds for each byte inside, bytes for each
// nanosecond (GB/s) in the file.
#pragma once

#include <cstdint>
#include <string>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::model {

using Time = std::int64_t;  ///< picoseconds

/// A rate, as what a byte costs.
struct Rate {
  std::int64_t fs_per_byte = 0;
  [[nodiscard]] Time time(std::int64_t bytes) const { return bytes * fs_per_byte / 1000; }
};

/// How a NIC finds a byte of an indirect key: what Table 4 cannot tell apart (paper_findings, item 1).
enum class IndirectVariant : std::uint8_t {
  search,  ///< each packet searches its key's own list, from the head
  cache,   ///< all entries of all keys share one translation cache
};

struct Cpu {
  Time post;       ///< building a send request
  Time post_sge;   ///< each entry of it
  Time post_recv;  ///< a receive; its entries cost as much as a send's
  Time doorbell;   ///< a write to the device
  Time poll_empty;
  Time poll_found;  ///< taking one completion
  Time bind_entry;  ///< writing an entry of a binding
};

/// Footprints in bytes; in the file, per cent of a cache: up to `none` nothing misses it, from `all` on everything
/// does.
struct MissRange {
  std::int64_t none, all;
};

struct Copies {
  Time call;
  Time block;               ///< each block
  Rate l2, llc, memory;     ///< where the bytes are
  Rate ramp;                ///< on top, while a block's first bytes are not yet fetched ahead
  std::int64_t ramp_bytes;  ///< so many of each block, beyond the second-level cache
  std::int64_t l2_bytes, llc_bytes;
  MissRange l2_miss, llc_miss;
  std::int64_t far_gap;  ///< a gap from which on each block misses all caches and the TLB
  Time far_block;        ///< what that costs
};

struct Registration {
  Time call, page;  ///< of a region
  Time undo, undo_page;
  Time key, key_entry;            ///< creating an indirect key
  std::int64_t key_free_entries;  ///< entries up to which its creation costs the same
  std::int64_t page_bytes;
};

struct Nic {
  Time doorbell;             ///< from the CPU's write to the device's seeing it
  Time request;              ///< fetching and handling one
  Time entry;                ///< of an sg_list or of an indirect key, fetched and begun by the send engine
  Time scatter;              ///< the same in the receive engine
  Time packet;               ///< an engine's time for a packet
  Time dma_read, dma_write;  ///< PCIe: how long one takes, whatever else is under way
  Rate pcie;
  Rate wire;
  Time flight;  ///< one way, with switches
  std::int64_t mtu, header;
  Time receive;     ///< fetching a receive, in the receive engine
  Time completion;  ///< from the last byte's being there to the completion's
  Time receive_completion;
  Time not_ready;  ///< a sender waits so long before it tries again
  Time retry;      ///< until it gives up on a peer that is gone
  Time bind, bind_entry;
  std::int64_t translations;  ///< pages whose addresses the device has at hand
  Time translation_miss;      ///< an engine's time for one that it has not
};

struct Indirect {
  IndirectVariant variant;
  Time scan;  ///< search: each entry from the head of the list to the one that is wanted
  /// search: on top for the second and later entries of one packet, for each entry passed and each 1024 that the list
  /// has
  Time restart;
  std::int64_t capacity;  ///< cache: entries, of all keys
  Time miss;              ///< cache: an entry that is not there
  Time dependent;         ///< cache: on top for the second and later entries of one packet
};

struct Profile {
  Cpu cpu;
  Copies copies;
  Registration registration;
  Nic nic;
  Indirect indirect;
  Limits limits;

  /// Errors: io, invalid_argument: the file, and what is missing, unknown, or out of its range.
  static Result<Profile> load(const std::string& file, const std::string& overrides);
};

}  // namespace lacuna::nic::model
