// The tags of chunks. A tag belongs to one message, until the message's receiver has all of its chunks and says so. So
// chunks that a message leaves behind when it is given up, and receives that it leaves posted, never meet another
// message's.
//
//   sender                                            receiver
//   take(): a tag of no message ─────── chunks ─────▶ has all: give_back()
//   looks at each 64th take() ◀──────── 64 tags ───── says so of 64 messages at once
//
// All of it is under the job's lock.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <vector>

#include "lacuna/mpi/host/host.hpp"

namespace lacuna::mpi {

class ChunkTags {
 public:
  static constexpr int kForInit = 0;   ///< for what is said in MPI_Init (rdma.cpp)
  static constexpr int kFirst = 1;     ///< of a message
  static constexpr int kNone = 32767;  ///< every MPI has tags up to this one; it is for what receivers say
  static constexpr int kAtOnce = 64;   ///< tags that a receiver gives back by one message

  /// `comm` has so many ranks, and is the host's for as long as this is used.
  ChunkTags(const Comm& comm, std::size_t ranks) : comm_(comm), sent_(ranks), received_(ranks) {}
  /// For a message to this rank. kNone: all belong to messages that are not known to have arrived. Throws
  /// std::bad_alloc.
  int take(int to);
  /// All chunks of a message from this rank are here.
  void give_back(int from, int tag);
  /// Whether the host has still to send some of what was given back.
  [[nodiscard]] bool some_go();

 private:
  struct Sent {
    std::bitset<kNone> used;
    int last = 0, count = 0;
  };
  using EndedTags = std::array<std::uint16_t, kAtOnce>;
  struct Received {
    std::vector<std::uint16_t> ended;
    EndedTags said{};  ///< the host reads it as long as there is a request
    Request request{};
    bool goes = false;
  };
  void learn(int to, Sent& sent);
  static bool goes(Received& received);
  const Comm& comm_;
  std::vector<std::unique_ptr<Sent>> sent_;          // of each rank; null: nothing was sent there
  std::vector<std::unique_ptr<Received>> received_;  // the same of what came from it
};

}  // namespace lacuna::mpi
