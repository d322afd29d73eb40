// Simulations by request: JSON lines in, JSON lines out (docs/design/worker.md).
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/measure/simulate.hpp"
#include "tools/worker/worker.hpp"

namespace lacuna::measure {
namespace {

using Json = nlohmann::ordered_json;

nic::WorldOptions options_of(const Json& request) {
  nic::WorldOptions options;
  options.profile = request.at("profile");
  if (request.contains("overrides")) options.overrides = request["overrides"].dump();
  options.ranks = request.value("ranks", 2);
  options.moves_bytes = request.value("verify", true);
  return options;
}

Result<Trial> trial_of(const Json& json) {
  Trial trial;
  const Json& layout = json.at("layout");
  trial.what = LACUNA_TRY(corpus::case_from_json(layout.dump(), layout.value("shape", "symmetric"), false));
  trial.method = LACUNA_TRY(method::find(json.at("method").get<std::string>()));
  const std::string name = json.value("notify", "none");
  const auto notify = method::notify_from_name(name);
  if (!notify) return base::fail(base::Code::invalid_argument, fmt::format("no notification \"{}\"; there are: none, imm, flag", name));
  trial.notify = *notify;
  return trial;
}

Json describe(const Simulated& s) {
  return {{"latency_us", s.latency_us},
          {"cpu_send_us", s.cpu_send_us},
          {"cpu_recv_us", s.cpu_recv_us},
          {"copy_send_us", s.copy_send_us},
          {"copy_recv_us", s.copy_recv_us},
          {"prepare_us", s.prepare_us},
          {"work_requests", s.send.work_requests},
          {"receives", s.receive.receives}};
}

Result<Json> run(const std::string& kind, const nic::WorldOptions& options, const Json& trial) {
  if (kind == "transfers") {
    Json row = describe(LACUNA_TRY(simulate_transfer(options, LACUNA_TRY(trial_of(trial)))));
    row["verified"] = options.moves_bytes;  // a wrong byte would have been an error
    return row;
  }
  if (kind == "alltoall") {
    const Alltoall result = LACUNA_TRY(simulate_alltoall(options, LACUNA_TRY(trial_of(trial))));
    return Json{{"latency_us", result.latency_us}, {"cpu_us", result.cpu_us}};
  }
  if (kind == "set_up") {
    const SetUp costs = LACUNA_TRY(simulate_set_up(options, trial.value("entries", 0), trial.value("bytes", std::int64_t{4096})));
    return Json{{"create_key_us", costs.create_key_us},
                {"bind_us", costs.bind_us},
                {"post_bind_us", costs.post_bind_us},
                {"register_us", costs.register_us},
                {"deregister_us", costs.deregister_us}};
  }
  return base::fail(base::Code::invalid_argument, fmt::format("no simulation \"{}\"; there are: transfers, alltoall, set_up", kind));
}

// A row for each trial: its numbers, or why it cannot be.
Json answer(const std::string& line) {
  const Json request = Json::parse(line, nullptr, false);
  if (request.is_discarded()) return {{"error", "a request is a line of JSON"}};
  try {
    const nic::WorldOptions options = options_of(request);
    Json rows = Json::array();
    for (const Json& trial : request.at("trials")) {
      const Result<Json> row = run(request.value("simulate", "transfers"), options, trial);
      rows.push_back(row ? *row : Json{{"refused", row.error().text()}});
    }
    return {{"rows", rows}};
  } catch (const Json::exception& error) {  // a missing or mistyped member
    return {{"error", error.what()}};
  }
}

}  // namespace

int serve_simulations() {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    std::cout << answer(line).dump() << '\n';
    std::cout.flush();
  }
  return 0;
}

}  // namespace lacuna::measure
