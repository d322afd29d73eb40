// One-sided communication: data with gaps at the origin that hosts are slow with is packed here, and what is got
// unpacked. Many a host makes an operation of each block, which takes up to some hundred times as long
// (docs/notes/mpi.md has the figures).
//
//   MPI_Put ── packed into a bounce buffer ──▶ PMPI_Put of bytes
//   MPI_Get ── bytes into a bounce buffer ───▶ PMPI_Get of bytes
//
// The buffer is kept until a call that completes the operation at the origin: MPI_Win_fence, _complete, _unlock, _flush
// and their kin. Then a Get's is unpacked.
//
// The target's side stays the host's, and so do locks, epochs and what becomes of operations that overlap.
#pragma once

#include <unordered_map>
#include <vector>

#include "lacuna/mpi/process/process.hpp"

namespace lacuna::mpi {

/// What an operation has at the origin.
struct Origin {
  std::byte* base = nullptr;
  Use type;
  Count count = 0;
  std::int64_t bytes = 0;
  Why why{};  ///< the host has it as it is, if it has
};

class RmaWindows {
 public:
  /// The host made a window; `shared`: its memory is the host's, and all its ranks load and store it.
  void made(Win win, bool shared);
  void freed(Win win);
  /// Memory for an operation; none: the host is to have it as it is.
  Bounce take(Process& process, bool gets, const void* base, Count count, Datatype type, int target, Count target_count,
              Datatype target_type, Win win, Origin& origin);
  /// The host has the operation.
  void add(Win win, int target, bool gets, Origin origin, Bounce bounce);
  /// Operations are complete at the origin: all of a window, or those with one target.
  void complete(Process& process, Win win, int target = kAll);
  static constexpr int kAll = -100;

 private:
  // Of bounce buffers, for each window: what comes on top the host has as it is
  static constexpr std::int64_t kRoom = 64 << 20;
  struct Operation {
    int target;
    bool gets;
    Origin origin;
    Bounce bounce;
  };
  struct RmaWindow {
    bool shared = false;
    std::int64_t bytes = 0;
    std::vector<Operation> operations;
  };
  Mutex mutex_;
  std::unordered_map<Win, RmaWindow> all_;
};

}  // namespace lacuna::mpi
