// The worker: two processes, JSON lines in, JSON lines out. docs/design/worker.md is the contract.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <iostream>

#include "lacuna/guide/guide.hpp"
#include "tools/measure/machine_json.hpp"
#include "tools/worker/serving.hpp"
#include "tools/worker/worker.hpp"

namespace lacuna::measure {
namespace {

// ns: between two requests rank 1 waits as long as rank 0 lives
constexpr std::int64_t kForever = std::int64_t{1} << 62;
constexpr std::int64_t kAnswer = 60'000'000'000;   // ns: and rank 0 as long as rank 1 tidies up
constexpr std::int64_t kConnect = 60'000'000'000;  // ns: each step of connecting has a shorter one
constexpr std::size_t kMostText = 64 << 20;        // of a request: a pair of layouts has two digits a byte
// That a request may want of rank 1 on another machine: payload, and memory
constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;

Result<Report> answer(Link& link, const Request& request) {
  return request.key_entries != 0 ? link.measure_keys(request.key_entries, request.budget) : link.measure(request.what, request.budget);
}

nic::Hello hello_of(std::string_view text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  nic::Hello hello;
  hello.bytes.assign(from, from + text.size());
  return hello;
}

std::string_view text_of(const nic::Hello& hello) { return {reinterpret_cast<const char*>(hello.bytes.data()), hello.bytes.size()}; }

// A request's text may be longer than what a bootstrap takes at once: a piece that is not full is the last. An empty
// text: there are no more.
constexpr std::size_t kPiece = 64 << 10;

Result<void> tell(nic::Bootstrap& control, std::string_view text) {
  for (;;) {
    const std::string_view piece = text.substr(0, kPiece);
    LACUNA_TRY(control.exchange(hello_of(piece), kAnswer));
    if (piece.size() < kPiece) return {};
    text.remove_prefix(kPiece);
  }
}

Result<std::string> listen(nic::Bootstrap& control) {
  for (std::string text;;) {
    const nic::Hello piece = LACUNA_TRY(control.exchange({}, kForever));
    text += text_of(piece);
    if (text.size() > kMostText)
      return base::fail(base::Code::limit, fmt::format("a request of more than {} bytes; rank 1 takes no longer ones", kMostText));
    if (piece.bytes.size() < kPiece) return text;
  }
}

// Opens the NIC and connects. The two processes get a core each where there are two.
Result<std::pair<std::unique_ptr<nic::Context>, std::unique_ptr<Link>>> join(int rank, const Station& station, nic::Bootstrap& bootstrap) {
  if (base::usable_cpus() > 1) LACUNA_TRY(base::pin_to_cpu(rank));
  std::unique_ptr<nic::Context> context = LACUNA_TRY(nic::open(station.nic, station.options));
  std::unique_ptr<Link> link = LACUNA_TRY(make_link(rank, *context, bootstrap, station.fault));
  return std::pair{std::move(context), std::move(link)};
}

void greet(const base::Machine& machine, std::string_view nic, const Link& link, const std::string& fault, const Json* peer) {
  Json hello = {{"protocol", kProtocol},
                {"version", base::version()},
                {"machine", machine_json<Json>(machine)},
                {"nic", describe_nic(nic, link.limits())},
                {"methods", describe_methods()},
                {"fault", fault}};
  if (peer != nullptr) hello["peer"] = *peer;
  print({{"hello", hello}});
}

// A question that needs no rank; nothing if it is none.
std::optional<Json> general_answer(const Json& request) {
  if (request.contains("devices")) return Json{{"devices", describe_devices()}};
  if (request.contains("providers")) return Json{{"providers", describe_providers()}};
  if (!request.contains("corpus")) return std::nullopt;
  const Json& which = request["corpus"];
  const bool ai = which.is_object() && which.value("suite", "ddtbench") == "ai";
  return Json{{"corpus", ai ? describe_ai(which.value("most_payload", std::int64_t{32} << 20)) : describe_corpus()}};
}

// Answers requests until there are no more. `tell_peer`: what rank 1 has to hear.
template <class TellPeer>
Result<void> answer_all(Link& link, std::string_view nic, const TellPeer& tell_peer) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (const std::optional<Json> known = json.is_object() ? general_answer(json) : std::nullopt) {
      print(*known);
      continue;
    }
    const Result<Request> request = request_of(line);
    if (!request) {
      Json id = nullptr;
      for (const char* kind : {"measure", "keys"}) {
        if (json.is_object() && json.contains(kind) && json[kind].is_object()) id = json[kind].value("id", Json(nullptr));
      }
      print({{"error", {{"id", id}, {"message", request.error().text()}}}});
      print({{"done", {{"id", id}}}});
      continue;
    }
    LACUNA_TRY(tell_peer(line));
    const Result<Report> report = answer(link, *request);
    if (!report) {
      print({{"error", {{"id", request->id}, {"layout", request->what.name}, {"message", report.error().text()}}}});
      return std::unexpected(report.error());
    }
    print_report(*request, nic, *report);
  }
  return {};
}

// Rank 1 may be on a machine with another cache, and yet has to build the same layouts.
std::string with_cache(const std::string& line) {
  Json request = Json::parse(line);
  if (request.contains("measure")) request["measure"]["cache_bytes"] = corpus::cache_bytes();
  return request.dump();
}

// What a request from another machine may want.
Result<void> check_size(const Case& what) {
  std::int64_t memory = 0;
  if (what.send.size() <= kMostBytes && what.receive_span <= kMostBytes && what.send_span <= kMostBytes &&
      base::mul(what.copies, std::max(what.receive_slot, what.send_slot), memory) && memory <= kMostBytes)
    return {};
  return base::fail(base::Code::limit, fmt::format("{}: {} bytes in {} copies; rank 1 takes cases of up to {} bytes of memory", what.name,
                                                   what.send.size(), what.copies, kMostBytes));
}

Result<void> lead_simulated(const std::string& nic, const std::string& platform) {
  const std::unique_ptr<Link> link = LACUNA_TRY(make_simulated_link(platform));
  const std::string label = guide::nic_label(nic);
  greet(base::machine(), label, *link, "", nullptr);
  return answer_all(*link, label, [](const std::string& /*line*/) { return Result<void>(); });
}

// What came from another machine: short, and harmless to a terminal and to whoever walks it.
void disarm(Json& json, int depth = 0) {
  constexpr int most_depth = 8;
  constexpr std::size_t most_words = 400;
  if (json.is_string()) {
    std::string text = json.get<std::string>().substr(0, most_words);
    std::ranges::replace_if(text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
    json = std::move(text);
  } else if (json.is_structured()) {
    if (depth == most_depth) json = nullptr;
    for (Json& inner : json) disarm(inner, depth + 1);
  }
}

}  // namespace

Result<Station> station_of(const std::string& nic, const nic::OpenOptions& options, const std::string& fault) {
  return Station{.nic = nic, .options = options, .fault = LACUNA_TRY(fault_from_text(fault)), .fault_text = fault};
}

Result<Json> trade(nic::Bootstrap& control, const Json& mine, std::int64_t timeout_ns) {
  const nic::Hello theirs = LACUNA_TRY(control.exchange(hello_of(mine.dump(-1, ' ', false, Json::error_handler_t::replace)), timeout_ns));
  Json json = Json::parse(text_of(theirs), nullptr, false);
  if (!json.is_object()) return base::fail(base::Code::malformed, "the other side does not say who it is");
  disarm(json);
  return json;
}

int report_failure(const Result<void>& result, std::string_view who) {
  if (result) return 0;
  base::log(base::Level::error, fmt::format("{}: {}", who, result.error().text()));
  return 1;
}

Result<void> lead(const Station& station, Channels channels, const Json* peer) {
  const base::Machine machine = base::machine();  // before this process is pinned to one CPU of it
  const auto [context, link] = LACUNA_TRY(join(0, station, channels.bootstrap));
  Json other;
  if (peer != nullptr) {
    other = *peer;
    other["nic"] = LACUNA_TRY(trade(channels.control, Json::object(), kConnect));
  }
  const std::string_view nic = context->nic_name();
  greet(machine, nic, *link, station.fault_text, peer != nullptr ? &other : nullptr);
  LACUNA_TRY(answer_all(*link, nic, [&](const std::string& line) { return tell(channels.control, with_cache(line)); }));
  return tell(channels.control, {});
}

Result<void> assist(const Station& station, Channels channels, bool tells) {
  const auto [context, link] = LACUNA_TRY(join(1, station, channels.bootstrap));
  if (tells) LACUNA_TRY(trade(channels.control, describe_nic(context->nic_name(), link->limits()), kConnect));
  for (;;) {
    const std::string next = LACUNA_TRY(listen(channels.control));
    if (next.empty()) return {};
    const Request request = LACUNA_TRY(request_of(next));
    if (tells) LACUNA_TRY(check_size(request.what));
    LACUNA_TRY(answer(*link, request));
  }
}

int serve(const std::string& name, const nic::OpenOptions& options, const std::string& fault) {
  if (const auto platform = guide::simulated_platform(name)) return report_failure(lead_simulated(name, *platform), "worker");
  const Result<Station> station = station_of(name, options, fault);
  if (!station) return report_failure(std::unexpected(station.error()), "worker");
  auto bootstrap = nic::UnixBootstrap::socket_pair();
  auto control = nic::UnixBootstrap::socket_pair();
  if (!bootstrap || !control) return report_failure(std::unexpected(bootstrap ? control.error() : bootstrap.error()), "worker");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return report_failure(base::fail(base::Code::io, "fork failed"), "worker");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives rank 0
    if (getppid() != parent) return 1;
    bootstrap->first = base::Fd();
    control->first = base::Fd();
    nic::UnixBootstrap wire(std::move(bootstrap->second));
    nic::UnixBootstrap commands(std::move(control->second));
    Result<void> assisted = assist(*station, {wire, commands});
    if (!assisted && assisted.error().code == base::Code::peer_lost) assisted = {};  // rank 0 says why
    std::_Exit(report_failure(assisted, "receiver"));
  }
  bootstrap->second = base::Fd();
  control->second = base::Fd();
  int code = 0;
  {
    nic::UnixBootstrap wire(std::move(bootstrap->first));
    nic::UnixBootstrap commands(std::move(control->first));
    code = report_failure(lead(*station, {wire, commands}), "sender");
  }
  int status = 0;
  waitpid(child, &status, 0);
  return code != 0 || WIFEXITED(status) == 0 ? 1 : WEXITSTATUS(status);
}

}  // namespace lacuna::measure
