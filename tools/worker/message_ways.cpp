// `lacuna-worker --messages`: times of the ways of messages, and prices of exchanges, by request: JSON lines in, JSON
// lines out (docs/design/worker.md).
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/measure/message_ways.hpp"
#include "tools/worker/serving.hpp"
#include "tools/worker/worker.hpp"

namespace lacuna::measure {
namespace {

using protocol::Communicator;

struct Ranks {
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<Communicator> communicator;
};

// The two ranks get a CPU each where there are two.
Result<Ranks> join_ranks(const std::string& nic, int rank, base::Fd socket) {
  if (base::usable_cpus() > 1) LACUNA_TRY(base::pin_to_cpu(rank));
  Ranks made{.context = LACUNA_TRY(nic::open(nic))};
  protocol::Group group{.rank = rank};
  group.peers.resize(2);
  group.peers[static_cast<std::size_t>(1 - rank)] = std::make_unique<nic::UnixBootstrap>(std::move(socket));
  made.communicator = LACUNA_TRY(Communicator::create(*made.context, nic, std::move(group), message_options()));
  return made;
}

Json form_of(const MessageTimes& times) {
  Json ns = Json::object();
  for (std::size_t way = 0; way < times.size(); ++way) {
    if (times.at(way) > 0) ns[std::string(guide::message_way_name(static_cast<guide::MessageWay>(way)))] = times.at(way);
  }
  return ns;
}

Result<void> sharing(Communicator& ranks) {
  const nic::PathInfo* mapped = ranks.context().limits().path(nic::Path::mapped);
  if (mapped != nullptr && mapped->available) return {};
  return base::fail(base::Code::invalid_argument, "these ranks share no memory, and ways of messages are of ranks that do");
}

// {"bytes", "run", "milliseconds"}, of both forms together.
Result<Json> answer_cell(Communicator& ranks, const Json& request) {
  LACUNA_TRY(sharing(ranks));
  Json ns = Json::object();
  MessageCell cell{.bytes = request.at("bytes"), .run = request.at("run"), .milliseconds = request.at("milliseconds").get<double>() / 2};
  for (const char* form : {"regular", "listed"}) {
    ns[form] = form_of(LACUNA_TRY(measure_messages(ranks, cell)));
    cell.listed = 1;
  }
  return Json{{"bytes", cell.bytes}, {"run", cell.run}, {"message_us", LACUNA_TRY(probe_messages(ranks))}, {"ns", ns}};
}

// {"wire": two digits for each byte of the layout's wire form, "ways": [names], "milliseconds"}
Result<Json> answer_given(Communicator& ranks, const Json& request) {
  LACUNA_TRY(sharing(ranks));
  std::vector<guide::MessageWay> ways;
  for (const std::string name : request.at("ways")) ways.push_back(LACUNA_TRY(guide::message_way_from_name(name)));
  const layout::Layout layout = LACUNA_TRY(corpus::layout_from_hex(request.at("wire").get<std::string>()));
  return Json{{"ns", form_of(LACUNA_TRY(measure_messages(ranks, layout, ways, request.at("milliseconds"))))}};
}

// {"exchanges": {"milliseconds"}}
Result<Json> answer_prices(Communicator& ranks, const Json& request) {
  const guide::ExchangePrices prices = LACUNA_TRY(measure_exchanges(ranks, request.at("milliseconds")));
  Json ns = Json::object();
  for (std::size_t i = 0; i < guide::kExchangePrices; ++i) {
    const auto price = static_cast<guide::ExchangePrice>(i);
    ns[std::string(guide::exchange_price_name(price))] = prices[price];
  }
  return ns;
}

Result<Json> answer(Communicator& ranks, const Json& request, std::string_view what) {
  if (what == "given") return answer_given(ranks, request);
  return what == "exchanges" ? answer_prices(ranks, request["exchanges"]) : answer_cell(ranks, request);
}

// A request that is none has an answer; a wrong byte ends it.
Result<void> answer_requests(Communicator& ranks) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    try {
      const Json request = Json::parse(line);
      const char* const what = request.contains("wire") ? "given" : request.contains("exchanges") ? "exchanges" : "cell";
      const Result<Json> found = answer(ranks, request, what);
      print(found ? Json{{what, *found}} : Json{{"error", found.error().text()}});
      if (!found && found.error().code != base::Code::invalid_argument) return std::unexpected(found.error());
    } catch (const Json::exception& error) {  // a missing or mistyped member
      print({{"error", error.what()}});
    }
  }
  return end_messages(ranks);
}

Result<void> lead_messages(const std::string& nic, base::Fd socket) {
  const Ranks ranks = LACUNA_TRY(join_ranks(nic, 0, std::move(socket)));
  return answer_requests(*ranks.communicator);
}

// Both ranks in this process.
Result<void> simulate_messages(const std::string& nic, const std::string& platform) {
  const auto world = LACUNA_TRY(nic::simulate({.profile = platform, .overrides = {}, .limits = {}}));
  return world->run([&](int rank) -> Result<void> {
    const auto ranks = LACUNA_TRY(Communicator::create(world->context(rank), nic, protocol::form_group(*world, rank), message_options()));
    return rank == 0 ? answer_requests(*ranks) : answer_messages(*ranks);
  });
}

Result<void> assist_messages(const std::string& nic, base::Fd socket) {
  const Ranks ranks = LACUNA_TRY(join_ranks(nic, 1, std::move(socket)));
  Result<void> answered = answer_messages(*ranks.communicator);
  if (!answered && answered.error().code == base::Code::peer_lost) return {};  // rank 0 says why
  return answered;
}

}  // namespace

int serve_messages(const std::string& nic) {
  if (const auto platform = guide::simulated_platform(nic)) return report_failure(simulate_messages(nic, *platform), "messages");
  auto sockets = nic::UnixBootstrap::socket_pair();
  if (!sockets) return report_failure(std::unexpected(sockets.error()), "messages");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return report_failure(base::fail(base::Code::io, "fork failed"), "messages");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives rank 0
    if (getppid() != parent) return 1;
    sockets->first = base::Fd();
    std::_Exit(report_failure(assist_messages(nic, std::move(sockets->second)), "rank 1 of messages"));
  }
  sockets->second = base::Fd();
  const int code = report_failure(lead_messages(nic, std::move(sockets->first)), "rank 0 of messages");
  int status = 0;
  waitpid(child, &status, 0);
  return code != 0 || WIFEXITED(status) == 0 ? 1 : WEXITSTATUS(status);
}

}  // namespace lacuna::measure
