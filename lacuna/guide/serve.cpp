// The worker: two processes, JSON lines in, JSON lines out. docs/worker.md is the contract.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lacuna/guide/ai.hpp"
#include "lacuna/guide/ddtbench.hpp"
#include "lacuna/guide/machine_json.hpp"
#include "lacuna/guide/simulate.hpp"
#include "lacuna/guide/words.hpp"

namespace lacuna::guide {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProtocol = 1;
constexpr std::int64_t kForever = std::int64_t{1} << 62;  // ns: between two requests rank 1 waits as long as rank 0 lives

void print(const Json& line) {
  std::cout << line.dump() << '\n';
  std::cout.flush();
}

// --- rank 0 and rank 1 agree on a request: its text travels, and both read it alike ---

struct Request {
  std::int64_t id = 0;
  Case what;
  Budget budget;
  std::string shape;
  int key_entries = 0;  // of a request for keys; 0: to measure a case
};

Result<Budget> budget_of(const Json& request) {
  Budget budget{.max_samples = request.value("max_samples", 200),
                .budget_ms = request.value("budget_ms", 50.0),
                .censor_ms = request.value("censor_ms", 100.0),
                .methods = request.value("methods", std::vector<std::string>()),
                .notifies = {},
                .leave_out = {}};
  for (const std::string& name : request.value("notifies", std::vector<std::string>())) {
    const auto notify = method::notify_from_name(name);
    if (!notify) return base::fail(base::Code::invalid_argument, fmt::format("no notification \"{}\"; there are: none, imm, flag", name));
    budget.notifies.push_back(*notify);
  }
  for (const auto& [method, path] : request.value("leave_out", std::vector<std::pair<std::string, std::string>>())) {
    const auto found = nic::path_from_name(path);
    if (!found) return base::fail(base::Code::invalid_argument, fmt::format("no path \"{}\"", path));
    budget.leave_out.emplace_back(method, *found);
  }
  return budget;
}

Result<Request> request_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const bool keys = !json.is_discarded() && json.contains("keys");
  if (!keys && (json.is_discarded() || !json.contains("measure"))) {
    return base::fail(base::Code::invalid_argument,
                      R"(a request is {"measure": {...}}, {"keys": {...}} or {"corpus": {}}: )" + text.substr(0, 100));
  }
  try {
    const Json& body = json.at(keys ? "keys" : "measure");
    Request request;
    request.id = body.at("id");
    request.budget = LACUNA_TRY(budget_of(body));
    if (keys) {
      request.key_entries = body.at("entries");
      request.shape = "symmetric";
      request.what = LACUNA_TRY(grid_case(Link::kKeyBlock, std::max(1, request.key_entries), Shape::symmetric));
      return request;
    }
    const Json& layout = body.at("layout");
    request.shape = layout.value("shape", "symmetric");
    request.what = LACUNA_TRY(case_from_json(layout.dump(), request.shape, body.value("cache", "warm") == "cold"));
    return request;
  } catch (const Json::exception& error) {  // a missing or mistyped member
    return base::fail(base::Code::invalid_argument, error.what());
  }
}

Result<Report> answer(Link& link, const Request& request) {
  return request.key_entries != 0 ? link.measure_keys(request.key_entries, request.budget) : link.measure(request.what, request.budget);
}

// A request's text may be longer than what a bootstrap takes at once: a piece that is not full is the last.
constexpr std::size_t kPiece = 64 << 10;

Result<void> tell(nic::Bootstrap& control, std::string_view text) {
  for (;;) {
    const std::string_view piece = text.substr(0, kPiece);
    const auto* from = reinterpret_cast<const std::byte*>(piece.data());
    nic::Hello hello;
    hello.bytes.assign(from, from + piece.size());
    LACUNA_TRY(control.exchange(hello, kForever));
    if (piece.size() < kPiece) return {};
    text.remove_prefix(kPiece);
  }
}

Result<std::string> listen(nic::Bootstrap& control) {
  for (std::string text;;) {
    const nic::Hello piece = LACUNA_TRY(control.exchange({}, kForever));
    text.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
    if (piece.bytes.size() < kPiece) return text;
  }
}

// --- what rank 0 prints ---

Json describe_nic(std::string_view name, const nic::Limits& limits) {
  Json paths = Json::array();
  for (const nic::PathInfo& path : limits.paths) {
    paths.push_back({{"name", path_name(path.path)},
                     {"available", path.available},
                     {"passive_target", path.passive_target},
                     {"shared_only", path.shared_only},
                     {"mover", kMovers.at(static_cast<std::size_t>(path.mover))},
                     {"unit_bytes", path.unit_bytes},
                     {"note", path.note}});
  }
  return {{"name", name},
          {"max_sge", limits.max_sge},
          {"max_sge_rd", limits.max_sge_rd},
          {"max_inline", limits.max_inline},
          {"indirect",
           {{"keys", limits.indirect.keys},
            {"entries", limits.indirect.entries},
            {"inline_entries", limits.indirect.inline_entries},
            {"strided_entries", limits.indirect.strided_entries},
            {"stride", limits.indirect.stride},
            {"note", limits.indirect.note}}},
          {"max_send_wr", limits.max_send_wr},
          {"max_recv_wr", limits.max_recv_wr},
          {"max_message_bytes", limits.max_message_bytes},
          {"paths", paths}};
}

Json describe_methods() {
  Json all = Json::array();
  for (const method::Method& method : measured_methods()) {
    Json notifies = Json::array();
    for (const method::Notify notify : method.notifies) notifies.push_back(notify_name(notify));
    all.push_back({{"name", method.name},
                   {"one_sided", method.one_sided()},
                   {"notifies", notifies},
                   {"by_hand", is_by_hand(method)},
                   {"summary", method.summary}});
  }
  return all;
}

Json describe_ai(std::int64_t most_payload) {
  Json all = Json::array();
  for (const AiTransfer& transfer : ai_transfers()) {
    if (const Result<Case> what = ai_case(std::string(transfer.name), most_payload)) {
      const Json size = {{"payload_bytes", what->send.size()},
                         {"dims", what->name.substr(transfer.name.size() + 1)},
                         {"span_bytes", std::max(what->send_span, what->receive_span)},
                         {"blocks", what->block_count}};
      all.push_back({{"name", transfer.name}, {"summary", transfer.what}, {"sizes", {size}}});
    }
  }
  return all;
}

Json describe_corpus() {
  Json all = Json::array();
  for (const std::string& family : ddtbench_families()) {
    Json sizes = Json::array();
    for (int size = 0; size < ddtbench_sizes(family); ++size) {
      if (const Result<DdtCase> ddt = ddtbench(family, size)) {
        const std::int64_t blocks = std::max(ddt->send.run_count(), ddt->receive.run_count());
        sizes.push_back({{"payload_bytes", ddt->send.size()},
                         {"dims", ddt->dims},
                         {"span_bytes", std::max(ddt->send_span, ddt->receive_span)},
                         {"blocks", blocks}});
      }
    }
    all.push_back({{"name", family}, {"sizes", sizes}});
  }
  return all;
}

// The members that a row, a skip and an error share.
Json identity(const Request& request, const std::string& method, nic::Path path, method::Notify notify) {
  return {
      {"id", request.id}, {"method", method}, {"path", path_name(path)}, {"notify", notify_name(notify)}, {"layout", request.what.name}};
}

Json describe_counters(const method::Counters& c) {
  return {{"work_requests", c.work_requests}, {"receives", c.receives},       {"sges", c.sges},
          {"doorbells", c.doorbells},         {"completions", c.completions}, {"keys_created", c.keys_created},
          {"keys_bound", c.keys_bound},       {"key_entries", c.key_entries}, {"bytes_copied", c.bytes_copied}};
}

Json describe_row(const Request& request, std::string_view nic, const Row& row) {
  Json line = identity(request, row.method, row.path, row.notify);
  line["nic"] = nic;
  line["block_bytes"] = request.what.block_bytes;
  line["block_count"] = request.what.block_count;
  line["payload_bytes"] = request.what.send.size();
  line["shape"] = request.shape;
  line["cache"] = request.what.cold() ? "cold" : "warm";
  line["latency_us"] = row.latency_us.value;
  const bool bounded = !row.censored;  // one sample bounds nothing
  line["ci_low_us"] = bounded ? Json(row.latency_us.low) : Json(nullptr);
  line["ci_high_us"] = bounded ? Json(row.latency_us.high) : Json(nullptr);
  line["ci_level"] = bounded ? Json(row.latency_us.level) : Json(nullptr);
  const bool compared = row.behind.value > 0;
  line["behind"] = compared ? Json(row.behind.value) : Json(nullptr);
  line["behind_low"] = compared ? Json(row.behind.low) : Json(nullptr);
  line["behind_high"] = compared ? Json(row.behind.high) : Json(nullptr);
  line["half_us"] = row.halves;
  line["visits"] = row.visits;
  line["cpu_send_us"] = row.cpu_send_us;
  line["cpu_recv_us"] = row.cpu_recv_us;
  line["copy_send_us"] = row.copy_send_us;
  line["copy_recv_us"] = row.copy_recv_us;
  line["counters"] = {{"send", describe_counters(row.send)}, {"receive", describe_counters(row.receive)}};
  line["samples"] = row.samples;
  line["censored"] = row.censored;
  line["verified"] = true;
  if (row.censored) line["reason"] = row.reason;
  return line;
}

Json describe_conditions(const Conditions& c) {
  Json probes = Json::array();
  for (const Probe& p : c.probes)
    probes.push_back({{"message_us", p.message_us}, {"sender_us", p.sender_us}, {"receiver_us", p.receiver_us}});
  return {{"probes", probes},
          {"preempted", c.preempted},
          {"stolen_ms", c.stolen_ms},
          {"setup_ms", c.setup_ms},
          {"measuring_ms", c.measuring_ms}};
}

void print_report(const Request& request, std::string_view nic, const Report& report) {
  for (const Row& row : report.rows) print({{"row", describe_row(request, nic, row)}});
  for (const Refusal& refusal : report.refusals) {
    Json line = identity(request, refusal.method, refusal.path, refusal.notify);
    line[refusal.wrong_data ? "message" : "reason"] = refusal.reason;
    print({{refusal.wrong_data ? "error" : "skip", line}});
  }
  Json done = {{"id", request.id}};
  if (!report.conditions.probes.empty()) done["conditions"] = describe_conditions(report.conditions);
  print({{"done", done}});
}

// --- the two ranks ---

struct Nic {
  std::string name;
  nic::OpenOptions options;
  Fault fault;
};

// Opens the NIC and connects. The two processes get a core each where there are two.
Result<std::pair<std::unique_ptr<nic::Context>, std::unique_ptr<Link>>> join(int rank, const Nic& nic, nic::Bootstrap& bootstrap) {
  if (base::usable_cpus() > 1) LACUNA_TRY(base::pin_to_cpu(rank));
  std::unique_ptr<nic::Context> context = LACUNA_TRY(nic::open(nic.name, nic.options));
  std::unique_ptr<Link> link = LACUNA_TRY(make_link(rank, *context, bootstrap, nic.fault));
  return std::pair{std::move(context), std::move(link)};
}

void greet(const base::Machine& machine, const std::string& nic, const Link& link, const std::string& fault) {
  print({{"hello",
          {{"protocol", kProtocol},
           {"version", base::version()},
           {"machine", machine_json<Json>(machine)},
           {"nic", describe_nic(nic, link.limits())},
           {"methods", describe_methods()},
           {"fault", fault}}}});
}

// Answers requests until there are no more. `tell_peer`: what rank 1 has to hear.
template <class TellPeer>
Result<void> answer_all(Link& link, const std::string& nic, const TellPeer& tell_peer) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    if (const Json json = Json::parse(line, nullptr, false); !json.is_discarded() && json.contains("corpus")) {
      const Json& which = json["corpus"];
      const bool ai = which.is_object() && which.value("suite", "ddtbench") == "ai";
      print({{"corpus", ai ? describe_ai(which.value("most_payload", std::int64_t{32} << 20)) : describe_corpus()}});
      continue;
    }
    const Result<Request> request = request_of(line);
    if (!request) {
      const Json json = Json::parse(line, nullptr, false);
      Json id = nullptr;
      for (const char* kind : {"measure", "keys"}) {
        if (!json.is_discarded() && json.contains(kind) && json[kind].is_object()) id = json[kind].value("id", Json(nullptr));
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

Result<void> lead(const Nic& nic, const std::string& fault_text, nic::Bootstrap& bootstrap, nic::Bootstrap& control) {
  const base::Machine machine = base::machine();  // before this process is pinned to one CPU of it
  const auto [context, link] = LACUNA_TRY(join(0, nic, bootstrap));
  greet(machine, nic.name, *link, fault_text);
  return answer_all(*link, nic.name, [&](const std::string& line) { return tell(control, line); });
}

Result<void> lead_simulated(const std::string& nic, const std::string& platform) {
  const std::unique_ptr<Link> link = LACUNA_TRY(make_simulated_link(platform));
  const std::string label = nic_label(nic);
  greet(base::machine(), label, *link, "");
  return answer_all(*link, label, [](const std::string& /*line*/) { return Result<void>(); });
}

Result<void> assist(const Nic& nic, nic::Bootstrap& bootstrap, nic::Bootstrap& control) {
  const auto [context, link] = LACUNA_TRY(join(1, nic, bootstrap));
  for (;;) {
    const Result<std::string> next = listen(control);
    if (!next) return {};  // rank 0 has no more requests
    const Request request = LACUNA_TRY(request_of(*next));
    LACUNA_TRY(answer(*link, request));
  }
}

int report_failure(const Result<void>& result, std::string_view who) {
  if (result) return 0;
  base::log(base::Level::error, fmt::format("{}: {}", who, result.error().text()));
  return 1;
}

}  // namespace

int serve(const std::string& name, const nic::OpenOptions& options, const std::string& fault) {
  if (const auto platform = simulated_platform(name)) return report_failure(lead_simulated(name, *platform), "worker");
  const Result<Fault> planted = fault_from_text(fault);
  if (!planted) return report_failure(std::unexpected(planted.error()), "worker");
  const Nic nic{name, options, *planted};
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
    std::_Exit(report_failure(assist(nic, wire, commands), "receiver"));
  }
  bootstrap->second = base::Fd();
  control->second = base::Fd();
  int code = 0;
  {
    nic::UnixBootstrap wire(std::move(bootstrap->first));
    nic::UnixBootstrap commands(std::move(control->first));
    code = report_failure(lead(nic, fault, wire, commands), "sender");
  }
  int status = 0;
  waitpid(child, &status, 0);
  return code != 0 || WIFEXITED(status) == 0 ? 1 : WEXITSTATUS(status);
}

}  // namespace lacuna::guide
