// A Link whose two ranks are simulated: each combination has a world of its own, which repeats to the nanosecond, so
// one transfer is enough.
#include <algorithm>
#include <limits>

#include "tools/measure/simulate.hpp"

namespace lacuna::measure {
namespace {

class SimulatedLink final : public Link {
 public:
  SimulatedLink(std::string platform, nic::Limits limits) : platform_(std::move(platform)), limits_(std::move(limits)) {}

  [[nodiscard]] const nic::Limits& limits() const override { return limits_; }

  Result<Report> measure(const Case& what, const Budget& budget) override {
    const auto wanted = [](const auto& list, const auto& value) { return list.empty() || std::ranges::find(list, value) != list.end(); };
    for (const std::string& name : budget.methods) LACUNA_TRY(method::find(name));
    Report report;
    double best_us = std::numeric_limits<double>::infinity();  // of those that tell both ends
    for (const method::Method& method : method::methods()) {
      for (const method::Notify notify : method.notifies) {
        if (!wanted(budget.methods, method.name) || (method.one_sided() && !wanted(budget.notifies, notify))) continue;
        if (!measure_one(what, method, notify, report)) continue;
        if (!method.one_sided() || notify != method::Notify::none) best_us = std::min(best_us, report.rows.back().latency_us.value);
      }
    }
    for (Row& row : report.rows) row.behind = exactly(row.latency_us.value / best_us);
    return report;
  }

  Result<Report> measure_keys(int entries, const Budget& /*budget*/) override {
    Report report;
    const Result<SetUp> costs = simulate_set_up({.profile = platform_, .overrides = {}}, entries, entries * kKeyBlock);
    const auto add = [&](const char* name, double us) {
      if (costs)
        report.rows.push_back({.method = name, .path = nic::Path::wire, .latency_us = exactly(us), .cpu_send_us = us, .samples = 1});
      if (!costs) report.refusals.push_back({.method = name, .path = nic::Path::wire, .reason = costs.error().text()});
    };
    add("create_key", costs ? costs->create_key_us : 0);
    add("bind_key", costs ? costs->bind_us : 0);
    return report;
  }

 private:
  static Median exactly(double value) { return {.value = value, .low = value, .high = value, .level = 1}; }
  // False if it was refused.
  bool measure_one(const Case& what, const method::Method& method, method::Notify notify, Report& report) {
    const Result<Simulated> got = simulate_transfer({.profile = platform_, .overrides = {}}, {what, &method, notify});
    if (!got) {
      report.refusals.push_back({.method = std::string(method.name),
                                 .path = nic::Path::wire,
                                 .notify = notify,
                                 .reason = got.error().text(),
                                 .wrong_data = got.error().code == base::Code::transfer});
      return false;
    }
    report.rows.push_back({.method = std::string(method.name),
                           .path = nic::Path::wire,
                           .notify = notify,
                           .latency_us = exactly(got->latency_us),
                           .behind = {},
                           .halves = {got->latency_us, got->latency_us},
                           .visits = 1,
                           .cpu_send_us = got->cpu_send_us,
                           .cpu_recv_us = got->cpu_recv_us,
                           .copy_send_us = got->copy_send_us,
                           .copy_recv_us = got->copy_recv_us,
                           .send = got->send,
                           .receive = got->receive,
                           .samples = 1});
    return true;
  }

  std::string platform_;
  nic::Limits limits_;
};

}  // namespace

Result<std::unique_ptr<Link>> make_simulated_link(const std::string& platform) {
  const auto world = LACUNA_TRY(nic::simulate({.profile = platform, .overrides = {}}));
  return std::make_unique<SimulatedLink>(platform, world->context(0).limits());
}

}  // namespace lacuna::measure
