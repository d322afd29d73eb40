// Caches handed from some ranks to others by every method and path that can, each verified byte by byte; with what
// planning and posting take for each block.
//
//   plan      each end makes its own layout from its page table, tells the other (wire form), makes and prepares the
//             method's operation
//   post      the sender's requests, all of them, on a NIC that moves nothing (posting.hpp)
//   transfer  from the first sender's start to the last receiver's end, on a path of the real NIC
#pragma once

#include <string>
#include <vector>

#include "lacuna/method/method.hpp"
#include "tools/handover/cache.hpp"
#include "tools/handover/crew.hpp"

namespace lacuna::handover {

/// From one rank to another; a rank is in as many as it likes. The heads that are moved begin with number `first_head`
/// of the model.
struct Stream {
  int sender = 0;
  int receiver = 0;
  Cache src, dst;
  std::int64_t first_head = 0;
};

struct Wanted {
  std::vector<std::string> methods;  ///< empty: all
  std::vector<std::string> paths;    ///< empty: all
  int repeats = 5;
  bool posting = true;
};

struct Row {
  std::string method, path;
  std::string refusal;     ///< why it cannot; empty if it can
  std::string wrong;       ///< what arrived wrongly; empty if nothing did
  double plan_ns = 0;      ///< for each block: operations made and prepared, at both ends together
  double post_ns = -1;     ///< for each block; negative: not the sender's, or not measured
  double transfer_us = 0;  ///< median
  double gigabytes = 0;    ///< a second
};

struct Outcome {
  std::int64_t blocks = 0;  ///< contiguous on both sides, of all streams
  std::int64_t bytes = 0;
  std::int64_t wire_bytes = 0;  ///< of both layouts of the first stream
  double layout_ns = 0;         ///< for each block: both layouts, from page tables (first stream)
  double wire_ns = 0;           ///< for each block: both told and understood (first stream)
  std::string src, dst;         ///< canonical forms (first stream)
  std::vector<Row> rows;
  [[nodiscard]] bool sound() const;  ///< something was moved, and nothing arrived wrongly
};

/// All ranks at the same time. Rank 0 has to be a sender, and gets the rows. `fault`: a byte of what arrives is
/// flipped, to see that it is found.
Result<Outcome> hand_over(Crew& crew, nic::Context& context, const std::vector<Stream>& streams, const Wanted& wanted, bool fault);

}  // namespace lacuna::handover
