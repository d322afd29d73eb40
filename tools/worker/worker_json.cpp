#include "tools/worker/worker_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "lacuna/nic/devices.hpp"
#include "tools/corpus/ai.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::measure {
namespace {

constexpr std::int64_t kLeastCache = 1 << 20;
constexpr std::int64_t kMostCache = std::int64_t{1} << 30;

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
  return {{"probes", probes},       {"preempted", c.preempted},       {"stolen_ms", c.stolen_ms},
          {"setup_ms", c.setup_ms}, {"measuring_ms", c.measuring_ms}, {"clock_us", c.clock_us}};
}

Json describe_limits(const nic::Limits& limits) {
  return {{"max_sge", limits.max_sge},
          {"max_sge_rd", limits.max_sge_rd},
          {"max_inline", limits.max_inline},
          {"max_send_wr", limits.max_send_wr},
          {"max_cqe", limits.max_cqe},
          {"max_message_bytes", limits.max_message_bytes},
          {"indirect_keys", limits.indirect.keys},
          {"indirect_entries", limits.indirect.entries}};
}

}  // namespace

void print(const Json& line) {
  // Names are what users and machines call things
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  std::cout.flush();
}

Result<Request> request_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const bool keys = !json.is_discarded() && json.contains("keys");
  if (!keys && (json.is_discarded() || !json.contains("measure"))) {
    return base::fail(base::Code::invalid_argument,
                      R"(a request is {"measure": {...}}, {"keys": {...}}, {"corpus": {}} or {"devices": {}}: )" + text.substr(0, 100));
  }
  try {
    const Json& body = json.at(keys ? "keys" : "measure");
    Request request;
    request.id = body.at("id");
    request.budget = LACUNA_TRY(budget_of(body));
    if (keys) {
      request.key_entries = body.at("entries");
      request.shape = "symmetric";
      request.what = LACUNA_TRY(corpus::grid_case(Link::kKeyBlock, std::max(1, request.key_entries), corpus::Shape::symmetric));
      return request;
    }
    const Json& layout = body.at("layout");
    request.shape = layout.value("shape", "symmetric");
    request.what =
        LACUNA_TRY(corpus::case_from_json(layout.dump(), request.shape, body.value("cache", "warm") == "cold",
                                          std::clamp(body.value("cache_bytes", corpus::cache_bytes()), kLeastCache, kMostCache)));
    return request;
  } catch (const Json::exception& error) {  // a missing or mistyped member
    return base::fail(base::Code::invalid_argument, error.what());
  }
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
  for (const corpus::AiTransfer& transfer : corpus::ai_transfers()) {
    if (const Result<Case> what = corpus::ai_case(std::string(transfer.name), most_payload)) {
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
  for (const std::string& family : corpus::ddtbench_families()) {
    Json sizes = Json::array();
    for (int size = 0; size < corpus::ddtbench_sizes(family); ++size) {
      if (const Result<corpus::DdtCase> ddt = corpus::ddtbench(family, size)) {
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

Json describe_devices() {
  const nic::Devices found = nic::describe_devices();
  Json list = Json::array();
  for (const nic::DeviceInfo& device : found.list) {
    Json ports = Json::array();
    for (const nic::DeviceInfo::Port& port : device.ports) {
      ports.push_back({{"number", port.number},
                       {"state", port.state},
                       {"link_layer", port.link_layer},
                       {"active_mtu", port.active_mtu},
                       {"max_mtu", port.max_mtu},
                       {"lid", port.lid}});
    }
    list.push_back({{"nic", device.nic},
                    {"driver", device.driver},
                    {"firmware", device.firmware},
                    {"emulated", device.emulated},
                    {"refusal", device.refusal},
                    {"connection", device.connection},
                    {"advertised", describe_limits(device.advertised)},
                    {"probed", describe_limits(device.probed)},
                    {"no_umr", device.no_umr},
                    {"windows", device.windows},
                    {"on_demand_paging", device.on_demand_paging},
                    {"ports", ports}});
  }
  return {{"none", found.none}, {"list", list}};
}

Json describe_providers() {
  const nic::Providers found = nic::describe_providers();
  Json list = Json::array();
  for (const nic::ProviderInfo& provider : found.list) {
    list.push_back({{"nic", provider.nic},
                    {"emulated", provider.emulated},
                    {"connected", provider.connected},
                    {"ordered", provider.ordered},
                    {"refusal", provider.refusal},
                    {"limits", describe_limits(provider.limits)}});
  }
  return {{"none", found.none}, {"list", list}};
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

}  // namespace lacuna::measure
