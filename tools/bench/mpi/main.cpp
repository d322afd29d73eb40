// lacuna-mpi-bench: MPI's datatypes, MPI_Pack, loops by hand and contiguous messages between two processes of one MPI.
// That MPI's mpiexec starts it twice:
//
//   mpiexec -n 2 lacuna-mpi-bench SHIM SOCKET                                               the MPI as it is
//   mpiexec -n 2 env LD_PRELOAD=liblacuna_mpi_openmpi.so lacuna-mpi-bench SHIM SOCKET       with Lacuna in front of it
//
// Two such jobs race: `lacuna bench mpi`, at the other end of SOCKET, has all contenders of both take turns, one batch
// of round trips each, so the program does one small thing at a time and sleeps in between. Nothing of Lacuna moves
// data here but what is preloaded. Both ranks get the same lines, and answer each with one:
//
//   ◀ {"hello": {..., "send_in": path of the library whose MPI_Send is called}}      tools/bench/job/rank.hpp
//   ▶ {"open": 17} and others, see tools/bench/mpi/session.hpp
//   ◀ {"row": {...}} or {"error": "..."}
#include <dlfcn.h>

#include <iostream>

#include "tools/bench/job/rank.hpp"
#include "tools/bench/mpi/session.hpp"

using namespace lacuna;
using nlohmann::json;

namespace {

// LD_PRELOAD of what is not there, or of another machine's, is a line on standard error and nothing else.
std::string library_of(const char* function) {
  Dl_info found{};
  void* address = dlsym(RTLD_DEFAULT, function);
  return address != nullptr && dladdr(address, &found) != 0 ? found.dli_fname : "";
}

void run(const std::string& shim, const std::string& socket) {
  const base::Machine machine = base::machine();  // before this process is bound to one of its CPUs
  const bench::Pair pair(shim);
  json hello = bench::hello_of(pair, machine, bench::mpi_cases());
  hello["send_in"] = library_of("MPI_Send");
  bench::Session session(pair);
  bench::converse(socket, hello, [&](const json& command) -> json { return {{"row", session.answer(command)}}; });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: lacuna-mpi-bench SHIM SOCKET; `lacuna bench mpi` has an mpiexec start it\n";
    return 2;
  }
  return bench::run_rank("lacuna-mpi-bench", [&] { run(argv[1], argv[2]); });
}
