// lacuna-message-bench: what a message takes, through Lacuna and through one MPI, between the same two processes. That
// MPI's mpiexec starts it twice:
//
//   mpiexec -n 2 lacuna-message-bench SHIM SOCKET NAME
//
// SHIM: the MPI's (tools/bench/copy/mpi_shim.c); SOCKET: the Unix socket where commands come from; NAME: by which the
// two meet through Lacuna. Each rank connects to the socket, says who it is, and then answers each line with one; it
// sleeps in between. Both get the same commands, rank 0 first.
//
//   ◀ {"hello": {...}}                                    tools/bench/job/rank.hpp
//   ▶ {"measure": 17, "milliseconds": 200, "fewest": 9, "forced": false}
//   ◀ {"row": {...}} or {"error": "..."}; rank 1: {"row": {}}
//
// `lacuna bench messages` is its user.
#include <fmt/format.h>

#include <iostream>

#include "tools/bench/job/measure.hpp"
#include "tools/bench/job/rank.hpp"
#include "tools/bench/messages/cases.hpp"
#include "tools/bench/messages/contenders.hpp"

using namespace lacuna;
using nlohmann::json;

namespace {

json answer(const json& command, const bench::Pair& pair, bench::Connection& connection) {
  bench::Effort effort;
  effort.milliseconds = command.value("milliseconds", effort.milliseconds);
  effort.fewest = command.value("fewest", effort.fewest);
  const bool forced = command.value("forced", false);
  const auto index = command.at("measure").get<std::size_t>();
  if (index >= bench::message_cases().size()) throw std::invalid_argument(fmt::format("there is no case {}", index));
  const auto add = [&](bench::Exchange& exchange) { bench::add_contenders(exchange, pair, connection, forced); };
  return {{"row", bench::measure(bench::message_cases()[index], pair, add, effort)}};
}

void run(const std::string& shim, const std::string& socket, const std::string& name) {
  const base::Machine machine = base::machine();  // before this process is bound to one of its CPUs
  const bench::Pair pair(shim);
  bench::Connection connection(pair, name);
  bench::converse(socket, bench::hello_of(pair, machine, bench::message_cases()),
                  [&](const json& command) { return answer(command, pair, connection); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: lacuna-message-bench SHIM SOCKET NAME; `lacuna bench messages` has an mpiexec start it\n";
    return 2;
  }
  return bench::run_rank("lacuna-message-bench", [&] { run(argv[1], argv[2], argv[3]); });
}
