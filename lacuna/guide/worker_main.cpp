// lacuna-worker: measures for the lacuna command (docs/worker.md).
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "lacuna/guide/measure.hpp"

int main(int argc, char** argv) {
  std::string nic = "local";
  lacuna::nic::OpenOptions options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--nic") == 0 && i + 1 < argc) {
      nic = argv[++i];
    } else if (std::strcmp(argv[i], "--simulate") == 0) {
      return lacuna::guide::serve_simulations();
    } else if (std::strcmp(argv[i], "--list-keys") == 0) {
      options.indirect.strided_entries = 0;
    } else {
      std::cerr << "usage: lacuna-worker [--nic NAME] [--list-keys]\n       lacuna-worker --simulate\n\nMeasures methods between two "
                   "processes; requests on standard input "
                   "and answers on "
                   "standard output are\n"
                   "JSON lines, see docs/worker.md. With --list-keys an indirect key is a list of all its blocks, also where a stride\n"
                   "would do. `lacuna guide` runs it for you.\n";
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
  }
  // For tests of the guide itself: does it notice?
  const char* fault = std::getenv("LACUNA_TEST_FAULT");
  return lacuna::guide::serve(nic, options, fault != nullptr ? fault : "");
}
