// The rows that can be asked for. Each verifies what it times, before and after.
#pragma once

#include "tools/bench/copy/cases.hpp"
#include "tools/bench/copy/measure.hpp"
#include "tools/bench/copy/mpi.hpp"

namespace lacuna::bench {

struct Request {
  std::string operation;  ///< "pack", "unpack", "transpack"
  bool cold = false;
  double milliseconds = 50;
};

/// A case of the list against the loops, memcpy and the limit, or, if there is an MPI, against that alone. Throws where
/// a contender moves other bytes than the reference, or touches a gap.
nlohmann::json measure_case(std::size_t index, const Request& request, const Mpi* mpi);
/// A case that the caller describes: {"name", "kind", "send", "receive"}, the sides as drawn_side() takes them. A side
/// that the operation does not have is one block of as many bytes. With a dense side, `dense_side` is Lacuna's pack to
/// that side or unpack from there.
nlohmann::json measure_drawn(const nlohmann::json& description, const Request& request);
/// Datatypes of one typemap against the first of them.
nlohmann::json measure_equivalents(std::size_t index, const Request& request);
/// A case in fragments of 4 KiB: in order, and in a random order.
nlohmann::json measure_fragments(std::size_t index, const Request& request);
/// What a call costs: packing 16 bytes, committing an indexed type of 10 000 entries.
nlohmann::json measure_calls(const Request& request);

}  // namespace lacuna::bench
