// lacuna-worker: measures for the lacuna command (docs/design/worker.md).
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "tools/worker/worker.hpp"

int main(int argc, char** argv) {
  std::string nic = "local";
  std::string host;
  std::string here;
  std::string visit;
  bool messages = false;
  lacuna::nic::OpenOptions options;
  for (int i = 1; i < argc; ++i) {
    const auto takes = [&](const char* option, std::string& value) {
      if (std::strcmp(argv[i], option) != 0 || i + 1 == argc) return false;
      value = argv[++i];
      return true;
    };
    if (takes("--nic", nic) || takes("--connect", host) || takes("--listen", here) || takes("--visit", visit)) continue;
    if (std::strcmp(argv[i], "--simulate") == 0) return lacuna::measure::serve_simulations();
    if (std::strcmp(argv[i], "--messages") == 0) {
      messages = true;
      continue;
    }
    if (std::strcmp(argv[i], "--list-keys") == 0) {
      options.indirect.strided_entries = 0;
      continue;
    }
    std::cerr
        << "usage: lacuna-worker [--nic NAME] [--list-keys] [--connect HOST:PORT [--visit NAME] | --listen ADDRESS:PORT]\n"
           "       lacuna-worker --simulate\n       lacuna-worker [--nic NAME] --messages\n\nMeasures methods between two processes; "
           "requests on "
           "standard input and answers on standard "
           "output are\n"
           "JSON lines, see docs/design/worker.md. With --list-keys an indirect key is a list of all its blocks, also where a stride\n"
           "would do. With --connect the second process is on another machine, where --listen runs; both know\n"
           "LACUNA_SECRET. `lacuna guide` runs it for you.\n";
    return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
  }
  if (messages) return lacuna::measure::serve_messages(nic);
  std::string fault;
#if defined(LACUNA_TEST_FAULTS)  // lacuna-faulty-worker, for tests of the guide itself: does it notice?
  if (const char* planted = std::getenv("LACUNA_TEST_FAULT"); planted != nullptr) fault = planted;
#endif
  if (!here.empty()) return lacuna::measure::serve_others(here, nic, options, fault);
  if (!host.empty()) return lacuna::measure::serve_with(host, visit, nic, options, fault);
  return lacuna::measure::serve(nic, options, fault);
}
