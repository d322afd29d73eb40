// LACUNA_MPI_REPORT=1: what was done with each datatype and peer, printed in MPI_Finalize.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lacuna/mpi/report/passed.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// Of the memory that a rank shares.
struct SharedUse {
  std::int64_t refused = 0;         ///< messages that found no room,
  std::int64_t boards_refused = 0;  ///< and boards
  std::int64_t board_bytes = 0;     ///< that boards had, at most, of
  std::int64_t board_limit = 0;     ///< those that they may have
};

class MessageReport {
 public:
  enum class Way {
    packed,
    offered,
    offered_directly,
    accepted,
    accepted_directly,
    unpacked,
    chunked_out,
    chunked_in,
    read_out,
    read_in,
    pack,
    unpack,
    collected_out,
    collected_in,
    exchanged_out,
    exchanged_in,
    put,
    got
  };
  MessageReport();
  [[nodiscard]] bool on() const { return on_; }
  /// What a message was expected to take, nanoseconds: 0, nothing is known.
  struct Expected {
    double ns = 0;          ///< by the way that it went
    double best_ns = 0;     ///< by the best of the others,
    std::string_view best;  ///< whose name this is
  };
  /// A message, or a call of MPI_Pack or MPI_Unpack (peer -1), that took `ns` of this process in MPI calls.
  void count(Way way, const Type* type, Count elements, int peer, std::int64_t bytes, std::int64_t ns, const Expected& expected);
  void count(Way way, const Type* type, Count elements, int peer, std::int64_t bytes, std::int64_t ns) {
    count(way, type, elements, peer, bytes, ns, Expected());
  }
  /// What the host takes to pack or unpack the same, timed now and then: whether it is to be timed now.
  [[nodiscard]] bool samples(const Type* type, Count elements, int peer, Way way);
  void sampled(const Type* type, Count elements, int peer, Way way, std::int64_t ns);
  Passed passed;
  /// `learning`: a line of it, or none.
  void print(int world_rank, const std::string& learning, const SharedUse& shared);

 private:
  struct ReportLine {
    Way way;
    std::int64_t messages = 0, bytes = 0, ns = 0;
    std::int64_t samples = 0, sampled_ns = 0;
    Expected expected;
    std::string form;
  };
  using Key = std::tuple<Way, layout::Digest, Count, int>;
  bool on_ = false;
  std::atomic<bool> lost_ = false;  ///< there was no memory for a line
  Mutex mutex_;
  std::map<Key, ReportLine> lines_;
};

}  // namespace lacuna::mpi
