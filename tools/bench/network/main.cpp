// lacuna-network-bench: what a message between two machines takes, as it lies and packed by hand, around the same
// endpoints. It is started twice, and rank 0 prints what was found, a line of JSON for each case; each case is
// verified, gaps too:
//
//   LACUNA_SECRET=... lacuna-network-bench NIC HOST:PORT RANK SUITE FEWEST_BYTES MOST_BYTES MILLISECONDS
//
// NIC: as lacuna::connect() takes it; HOST:PORT: where rank 0 listens; SUITE: contiguous or ddtbench, whose cases of so
// many bytes are measured, each for so long.
//
//   {"hello": {...}}     tools/bench/job/rank.hpp, with the NIC
//   {"row": {...}}       tools/bench/job/measure.hpp
//   {"error": "..."}     of a case: wrong bytes arrived
//   {"statistics": ...}  how the messages travelled, for people
//
// `scripts/network_bench.py` is its user.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "tools/bench/job/by_lacuna.hpp"
#include "tools/bench/job/measure.hpp"
#include "tools/bench/job/rank.hpp"
#include "tools/bench/network/network.hpp"

using namespace lacuna;
using nlohmann::json;

namespace {

std::vector<bench::MessageCase> cases_of(const std::string& suite, std::int64_t fewest, std::int64_t most) {
  std::vector<bench::MessageCase> all;
  if (suite == "ddtbench") {
    all = bench::ddtbench_cases();
  } else if (suite == "contiguous") {
    for (std::int64_t bytes = 8; bytes <= most; bytes *= 2) all.push_back(bench::contiguous_case(bytes));
  } else {
    throw std::invalid_argument("no suite " + suite + "; there are contiguous and ddtbench");
  }
  std::erase_if(all, [&](const bench::MessageCase& c) { return c.payload < fewest || c.payload > most; });
  return all;
}

void print(const bench::Pair& pair, const json& line) {
  if (pair.rank() == 0) std::cout << line << std::endl;
}

void run(char** argv) {
  const char* secret = std::getenv("LACUNA_SECRET");
  const bench::Network network = bench::meet_other(argv[1], argv[2], std::atoi(argv[3]), secret == nullptr ? "" : secret);
  const bench::Pair pair(bench::messages_of(*network.ranks));
  const std::vector<bench::MessageCase> cases = cases_of(argv[4], std::atoll(argv[5]), std::atoll(argv[6]));
  const bench::Effort effort{.milliseconds = std::atof(argv[7])};
  json hello = bench::hello_of(pair, base::machine(), cases);
  hello["nic"] = network.context->nic_name();
  print(pair, {{"hello", hello}});
  const auto add = [&](bench::Exchange& exchange) {
    bench::add_lacuna(exchange, "lacuna", pair.peer(), *network.ranks);
    if (exchange.what().group != "contiguous") {
      exchange.add_by_hand("hand_elements", bench::Form::elements);
      if (exchange.has_memcpy()) exchange.add_by_hand("hand_memcpy", bench::Form::memcpy);
    }
  };
  for (const bench::MessageCase& what : cases) {
    try {
      print(pair, {{"row", bench::measure(what, pair, add, effort)}});
    } catch (const bench::Broken&) {
      throw;
    } catch (const std::exception& error) {
      print(pair, {{"error", fmt::format("{}: {}", what.name, error.what())}});
    }
  }
  print(pair, {{"statistics", network.ranks->statistics().describe()}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: lacuna-network-bench NIC HOST:PORT RANK SUITE FEWEST_BYTES MOST_BYTES MILLISECONDS\n"
                 "`scripts/network_bench.py` starts two of them\n";
    return 2;
  }
  return bench::run_rank("lacuna-network-bench", [&] { run(argv); });
}
