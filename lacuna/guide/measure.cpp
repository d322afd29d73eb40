// Rank 0's plan for one case: one verified transfer of each combination, then rounds over all that are worth it until
// the budget is spent, then one more verified transfer of other data. Rounds interleave the combinations, so that a
// disturbance hits all of them alike.
#include <algorithm>
#include <utility>

#include "lacuna/guide/key_costs.hpp"
#include "lacuna/guide/workbench.hpp"

namespace lacuna::guide {
namespace {

constexpr int kFewestVisits = 2;  // samples in a row share what disturbs them
constexpr double kFarBehind = 5;  // a combination this many times slower than the best needs no more than the fewest
constexpr std::int64_t kSeeds = 2;

struct Series {
  bool alive = false;
  Timed all;
  double first_us = 0;
  int visits = 0;

  [[nodiscard]] double median() const { return all.latency_us.empty() ? first_us : median_of(all.latency_us).value; }
  void add(const Timed& timed, std::size_t from) {
    const auto append = [from](std::vector<double>& to, const std::vector<double>& some) {
      to.insert(to.end(), some.begin() + static_cast<std::ptrdiff_t>(from), some.end());
    };
    append(all.latency_us, timed.latency_us);
    append(all.cpu_send_us, timed.cpu_send_us);
    append(all.cpu_recv_us, timed.cpu_recv_us);
    append(all.copy_send_us, timed.copy_send_us);
    append(all.copy_recv_us, timed.copy_recv_us);
    all.send = timed.send;
    all.receive = timed.receive;
  }
};

// Transfers in a row, so that a warm one finds its own staging warm: more where they are short.
std::int32_t visit_length(double latency_us) { return latency_us < 50 ? 16 : latency_us < 500 ? 6 : 3; }

class Measurement {
 public:
  Measurement(Workbench& bench, nic::Context& context, const Budget& budget)
      : bench_(bench), context_(context), budget_(budget), series_(bench.combinations().size()) {}

  Result<Report> run() {
    bench_.fill_source(0);
    for (std::size_t i = 0; i < series_.size(); ++i) LACUNA_TRY(first(i));
    if (budget_.cold) LACUNA_TRY(touch_every_copy());
    LACUNA_TRY(rounds());
    bench_.fill_source(1);
    for (std::size_t i = 0; i < series_.size(); ++i) LACUNA_TRY(last(i));
    LACUNA_TRY(bench_.finish());
    return std::move(report_);
  }

 private:
  Result<Timed> visit(std::size_t i, std::int32_t samples, std::int32_t verify_seed) {
    const std::int64_t copy = next_copy_;
    next_copy_ += samples;
    return bench_.visit({Command::Kind::visit, static_cast<std::int32_t>(i), samples, verify_seed, copy});
  }

  void refuse(std::size_t i, std::string reason, bool wrong_data) {
    const Combination& c = bench_.combinations()[i];
    series_[i].alive = false;
    report_.refusals.push_back({std::string(c.method->name), c.endpoint->qp().path(), c.notify, std::move(reason), wrong_data});
  }

  Row row(std::size_t i) const {
    const Combination& c = bench_.combinations()[i];
    Row row{.method = std::string(c.method->name), .path = c.endpoint->qp().path(), .notify = c.notify};
    const Timed& all = series_[i].all;
    row.latency_us = median_of(all.latency_us);
    row.cpu_send_us = median_of(all.cpu_send_us).value;
    row.cpu_recv_us = median_of(all.cpu_recv_us).value;
    row.copy_send_us = median_of(all.copy_send_us).value;
    row.copy_recv_us = median_of(all.copy_recv_us).value;
    row.send = all.send;
    row.receive = all.receive;
    row.samples = static_cast<int>(all.latency_us.size());
    return row;
  }

  Result<void> first(std::size_t i) {
    const Combination& c = bench_.combinations()[i];
    if (!c.operation) return refuse(i, c.refusal, false), Result<void>{};
    const Timed timed = LACUNA_TRY(visit(i, 1, 0));
    if (!timed.wrong.empty()) return refuse(i, timed.wrong, true), Result<void>{};
    series_[i].first_us = timed.latency_us.front();
    series_[i].alive = series_[i].first_us <= budget_.censor_ms * 1e3;
    if (series_[i].alive) return {};
    series_[i].add(timed, 0);
    Row censored = row(i);
    censored.censored = true;
    censored.reason = "one verified transfer took longer than the censoring time";
    report_.rows.push_back(std::move(censored));
    return {};
  }

  // A peer's memory that this process reaches by itself costs a page fault at each page's first touch. That is the price of mapping it, paid
  // once, not of a cold cache.
  Result<void> touch_every_copy() {
    for (std::size_t i = 0; i < series_.size(); ++i) {
      const Combination& c = bench_.combinations()[i];
      const nic::PathInfo* path = c.endpoint->limits().path(c.endpoint->qp().path());
      if (!series_[i].alive || c.method->exposes != method::Exposes::destination || path == nullptr || !path->shared_only) continue;
      for (next_copy_ = 0; next_copy_ < bench_.copies();) LACUNA_TRY(visit(i, Visit::kMost, -1));
      return {};
    }
    return {};
  }

  Result<void> rounds() {
    const std::int64_t began = context_.now();
    for (std::size_t round = 0;; ++round) {
      const double spent = static_cast<double>(context_.now() - began) / (budget_.budget_ms * 1e6);
      double best = 1e300;
      for (const Series& s : series_) best = s.alive ? std::min(best, s.median()) : best;
      bool any = false;
      for (std::size_t k = 0; k < series_.size(); ++k) {
        const std::size_t i = (k + round) % series_.size();
        const Series& s = series_[i];
        const std::size_t have = s.all.latency_us.size();
        const bool wanted = have < kFewestSamples || s.visits < kFewestVisits
                                ? spent < 4
                                : spent < 1 && std::cmp_less(have, budget_.max_samples) && s.median() < kFarBehind * best;
        if (!s.alive || !wanted) continue;
        // The first of a row brings the caches into its own state and is not counted; a cold one has no state to bring.
        const std::int32_t discarded = budget_.cold ? 0 : 1;
        series_[i].add(LACUNA_TRY(visit(i, visit_length(s.median()), -1)), static_cast<std::size_t>(discarded));
        ++series_[i].visits;
        any = true;
      }
      if (!any) return {};
    }
  }

  Result<void> last(std::size_t i) {
    if (!series_[i].alive) return {};
    const Timed timed = LACUNA_TRY(visit(i, 1, 1));
    if (!timed.wrong.empty()) return refuse(i, timed.wrong, true), Result<void>{};
    if (series_[i].all.latency_us.empty()) series_[i].add(timed, 0);
    report_.rows.push_back(row(i));
    return {};
  }

  Workbench& bench_;
  nic::Context& context_;
  const Budget& budget_;
  std::vector<Series> series_;
  Report report_;
  std::int64_t next_copy_ = 0;
};

class PairLink final : public Link {
 public:
  PairLink(int rank, nic::Context& context, nic::Bootstrap& bootstrap)
      : rank_(rank), context_(context), bootstrap_(bootstrap), limits_(context.limits()) {}

  Result<void> connect() {
    for (nic::PathInfo& path : limits_.paths) {
      auto endpoint = method::Endpoint::connect(context_, bootstrap_, path.path);
      if (endpoint) {
        endpoints_.push_back(std::move(*endpoint));
      } else {
        path.available = false;
        path.note = endpoint.error().text();
      }
    }
    if (endpoints_.empty()) return base::fail(base::Code::unsupported, "the two processes have no data path in common");
    mailbox_ = LACUNA_TRY(Mailbox::create(context_, bootstrap_, endpoints_.front()->qp().path()));
    wire_ = LACUNA_TRY(Wire::connect(context_, bootstrap_, endpoints_.front()->qp().path()));
    return {};
  }

  [[nodiscard]] const nic::Limits& limits() const override { return limits_; }

  Result<Report> measure(const Case& what, const Budget& budget) override {
    Workbench bench(rank_, context_, *mailbox_, what, LACUNA_TRY(Workspace::create(context_, what, rank_, budget.cold)));
    if (rank_ == 1) bench.prepare_destination(kSeeds);
    LACUNA_TRY(bench.set_up(endpoints_, budget, bootstrap_));
    if (rank_ == 0) return Measurement(bench, context_, budget).run();
    LACUNA_TRY(bench.follow());
    return Report{};
  }

  Result<Report> measure_keys(int entries, const Budget& budget) override {
    return guide::measure_keys(rank_, context_, wire_, *mailbox_, entries, budget);
  }

 private:
  int rank_;
  nic::Context& context_;
  nic::Bootstrap& bootstrap_;
  nic::Limits limits_;
  std::vector<std::unique_ptr<method::Endpoint>> endpoints_;
  std::unique_ptr<Mailbox> mailbox_;
  Wire wire_;
};

}  // namespace

Result<std::unique_ptr<Link>> make_link(int rank, nic::Context& context, nic::Bootstrap& bootstrap) {
  auto link = std::make_unique<PairLink>(rank, context, bootstrap);
  LACUNA_TRY(link->connect());
  return link;
}

}  // namespace lacuna::guide
