// `lacuna-worker --messages`: times of the ways of messages by request, JSON lines in, JSON lines out
// (docs/design/worker.md).
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
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
Result<Ranks> join_ranks(int rank, base::Fd socket) {
  if (base::usable_cpus() > 1) LACUNA_TRY(base::pin_to_cpu(rank));
  Ranks made{.context = LACUNA_TRY(nic::open("local"))};
  protocol::Group group{.rank = rank};
  group.peers.resize(2);
  group.peers[static_cast<std::size_t>(1 - rank)] = std::make_unique<nic::UnixBootstrap>(std::move(socket));
  made.communicator = LACUNA_TRY(Communicator::create(*made.context, "local", std::move(group), message_options()));
  return made;
}

Json form_of(const MessageTimes& times) {
  Json ns = Json::object();
  for (std::size_t way = 0; way < times.size(); ++way) {
    if (times.at(way) > 0) ns[std::string(guide::message_way_name(static_cast<guide::MessageWay>(way)))] = times.at(way);
  }
  return ns;
}

Result<std::vector<std::byte>> bytes_of(std::string_view digits) {
  std::vector<std::byte> bytes(digits.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* at = digits.data() + 2 * i;
    if (std::from_chars(at, at + 2, value, 16).ptr != at + 2)
      return base::fail(base::Code::invalid_argument, fmt::format("byte {} of the wire form is none", i));
    bytes[i] = static_cast<std::byte>(value);
  }
  return bytes;
}

// {"bytes", "run", "milliseconds"}, of both forms together.
Result<Json> answer_cell(Communicator& ranks, const Json& request) {
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
  std::vector<guide::MessageWay> ways;
  for (const std::string name : request.at("ways")) ways.push_back(LACUNA_TRY(guide::message_way_from_name(name)));
  const std::vector<std::byte> wire = LACUNA_TRY(bytes_of(request.at("wire").get<std::string>()));
  const layout::Layout layout = LACUNA_TRY(layout::decode(wire));
  return Json{{"ns", form_of(LACUNA_TRY(measure_messages(ranks, layout, ways, request.at("milliseconds"))))}};
}

// A request that is none has an answer; a wrong byte ends it.
Result<void> answer_requests(Communicator& ranks) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    try {
      const Json request = Json::parse(line);
      const bool given = request.contains("wire");
      const Result<Json> cell = given ? answer_given(ranks, request) : answer_cell(ranks, request);
      print(cell ? Json{{given ? "given" : "cell", *cell}} : Json{{"error", cell.error().text()}});
      if (!cell && cell.error().code != base::Code::invalid_argument) return std::unexpected(cell.error());
    } catch (const Json::exception& error) {  // a missing or mistyped member
      print({{"error", error.what()}});
    }
  }
  return end_messages(ranks);
}

Result<void> lead_messages(base::Fd socket) {
  const Ranks ranks = LACUNA_TRY(join_ranks(0, std::move(socket)));
  return answer_requests(*ranks.communicator);
}

Result<void> assist_messages(base::Fd socket) {
  const Ranks ranks = LACUNA_TRY(join_ranks(1, std::move(socket)));
  Result<void> answered = answer_messages(*ranks.communicator);
  if (!answered && answered.error().code == base::Code::peer_lost) return {};  // rank 0 says why
  return answered;
}

}  // namespace

int serve_messages() {
  auto sockets = nic::UnixBootstrap::socket_pair();
  if (!sockets) return report_failure(std::unexpected(sockets.error()), "messages");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return report_failure(base::fail(base::Code::io, "fork failed"), "messages");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives rank 0
    if (getppid() != parent) return 1;
    sockets->first = base::Fd();
    std::_Exit(report_failure(assist_messages(std::move(sockets->second)), "rank 1 of messages"));
  }
  sockets->second = base::Fd();
  const int code = report_failure(lead_messages(std::move(sockets->first)), "rank 0 of messages");
  int status = 0;
  waitpid(child, &status, 0);
  return code != 0 || WIFEXITED(status) == 0 ? 1 : WEXITSTATUS(status);
}

}  // namespace lacuna::measure
