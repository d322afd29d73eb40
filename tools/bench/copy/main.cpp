// lacuna-copy-bench: measures pack, unpack and transpack against loops, memcpy and one MPI. It speaks JSON, one line
// each way:
//
//   lacuna-copy-bench [--mpi SHIM]
//   ◀ {"hello": {"version", "instruction_set", "compiler", "mpi", "machine": {..},
//                "cases": [{"group", "name", "kind"}], "equivalents": [..]}}
//   ▶ {"measure": 17, "operation": "pack", "cache": "warm", "milliseconds": 50}    ◀ {"row": {...}} or {"error": "..."}
//   ▶ {"drawn": {"name", "kind", "send": {..}, "receive": {..}}, "operation": "pack", ...}    (bench.hpp, drawn.hpp)
//   ▶ {"equivalent": 0, "operation": "pack", ...}    ▶ {"fragments": 17, ...}    ▶ {"calls": true}
//
// `lacuna bench copy` is its user.
#include <fmt/format.h>

#include <cstring>
#include <iostream>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "tools/bench/copy/bench.hpp"
#include "tools/measure/machine_json.hpp"

using namespace lacuna;
using nlohmann::json;

namespace {

json hello(const bench::Mpi* mpi) {
  json cases = json::array();
  for (const bench::CaseEntry& entry : bench::cases())
    cases.push_back({{"group", entry.group}, {"name", entry.name}, {"kind", entry.family}});
  json equivalents = json::array();
  for (const bench::Equivalents& e : bench::equivalents()) equivalents.push_back({{"name", e.name}, {"ways", e.ways}});
  return {{"version", base::version()},
          {"instruction_set", copy::instruction_set()},
          {"compiler", fmt::format("GCC {}", __VERSION__)},
          {"mpi", mpi == nullptr ? "" : mpi->library()},
          {"machine", measure::machine_json<json>(base::machine())},
          {"cases", cases},
          {"equivalents", equivalents}};
}

json answer(const json& command, const bench::Mpi* mpi) {
  bench::Request request;
  request.cold = command.value("cache", "warm") == "cold";
  request.milliseconds = command.value("milliseconds", 50.0);
  request.operation = command.value("operation", "pack");
  if (command.contains("measure")) return bench::measure_case(command["measure"].get<std::size_t>(), request, mpi);
  if (command.contains("drawn")) return bench::measure_drawn(command["drawn"], request);
  if (command.contains("equivalent")) return bench::measure_equivalents(command["equivalent"].get<std::size_t>(), request);
  if (command.contains("fragments")) return bench::measure_fragments(command["fragments"].get<std::size_t>(), request);
  if (command.contains("calls")) return bench::measure_calls(request);
  throw std::invalid_argument("unknown command " + command.dump());
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<bench::Mpi> mpi;
  if (argc == 3 && std::strcmp(argv[1], "--mpi") == 0) {
    auto started = bench::Mpi::start(argv[2]);
    if (!started) {
      std::cerr << "lacuna-copy-bench: " << started.error().text() << "\n";
      return 3;
    }
    mpi = std::move(*started);
  } else if (argc != 1) {
    std::cerr << "usage: lacuna-copy-bench [--mpi SHIM]; `lacuna bench copy` starts it\n";
    return 2;
  }
  std::cout << json{{"hello", hello(mpi.get())}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      reply = {{"row", answer(json::parse(line), mpi.get())}};
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}
