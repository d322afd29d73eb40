#include "tools/bench/job/rank.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "lacuna/copy/copy.hpp"
#include "tools/bench/job/talk.hpp"
#include "tools/measure/machine_json.hpp"

namespace lacuna::bench {

using nlohmann::json;

json hello_of(const Pair& pair, const base::Machine& machine, const std::vector<MessageCase>& cases) {
  json known = json::array();
  for (const MessageCase& c : cases)
    known.push_back({{"suite", c.suite}, {"name", c.name}, {"family", c.family}, {"payload_bytes", c.payload}, {"blocks", c.blocks}});
  return {{"rank", pair.rank()},
          {"pid", getpid()},
          {"version", base::version()},
          {"mpi", pair.mpi().library()},
          {"instruction_set", copy::instruction_set()},
          {"compiler", fmt::format("GCC {}", __VERSION__)},
          {"machine", measure::machine_json<json>(machine)},
          {"cases", known}};
}

void converse(const std::string& socket, const json& hello, const std::function<json(const json&)>& answer) {
  Talk talk(socket);
  talk.say({{"hello", hello}});
  for (std::string line; talk.hear(line);) {
    json reply;
    try {
      reply = answer(json::parse(line));
    } catch (const Broken&) {
      throw;
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    talk.say(reply);
  }
}

int run_rank(const char* program, const std::function<void()>& run) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    run();
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << "\n";
    _exit(3);
  }
  return 0;
}

}  // namespace lacuna::bench
