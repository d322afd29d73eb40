// A rank's main loop: it says who it is, then answers each line with one and sleeps in between.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/bench/job/cases.hpp"
#include "tools/bench/job/pair.hpp"

namespace lacuna::bench {

/// What a rank says of itself:
///   {"rank", "pid", "version", "mpi", "instruction_set", "compiler", "machine": {..},
///    "cases": [{"suite", "name", "family", "payload_bytes", "blocks"}]}
/// `machine`: from before this process was bound to one of its CPUs.
nlohmann::json hello_of(const Pair& pair, const base::Machine& machine, const std::vector<MessageCase>& cases);

/// Until the socket's other end closes. What `answer` throws is said as {"error": text}; Broken passes.
void converse(const std::string& socket, const nlohmann::json& hello, const std::function<nlohmann::json(const nlohmann::json&)>& answer);

/// The status of the process. A rank whose launcher is gone ends, and one that `run` throws in ends both: without
/// MPI_Finalize, upon which mpiexec ends the other, which may be waiting inside of the MPI.
int run_rank(const char* program, const std::function<void()>& run);

}  // namespace lacuna::bench
