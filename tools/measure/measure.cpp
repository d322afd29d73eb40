// Rank 0's plan for one case: one verified transfer of each combination; then rounds, in which each has its visit, so
// that a disturbance hits all of them alike; then one more verified transfer of other data. The time goes where methods
// are close: a combination that is clearly behind after three rounds gets no more, and the rounds end once all others
// are known to be behind the best, or as good.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/measure/disturbance.hpp"
#include "tools/measure/key_costs.hpp"
#include "tools/measure/workbench.hpp"

namespace lacuna::measure {
namespace {

constexpr int kFewestRounds = 3;
constexpr int kMostRounds = 60;
constexpr std::int64_t kBetweenProbes = 10'000'000;  // ns: a probe takes half a millisecond
// Clearly this many times as long as the best: behind, and not measured further
constexpr double kFarBehind = 1.5;
constexpr double kBehind = 1.05;    // clearly so: as well as known
constexpr double kResolved = 0.02;  // an interval of the ratio as narrow as this: as well as known
struct Hopeless {
  double us;     // a first transfer that takes longer than this
  double times;  // and so many times as long as the best one
};
constexpr Hopeless kLong{1e3, 3};
constexpr Hopeless kTooLong{4e3, 2};
constexpr double kNotTwice = 3;  // a transfer of so many times the censoring time is not tried twice
// Of the last-level cache: what two buffers and two stagings of a side leave room for
constexpr std::int64_t kStaysShare = 8;
constexpr double kOvertime = 4;                   // the fewest rounds may take so many times the budget
constexpr std::int64_t kVerifiedTwice = 4 << 20;  // payload up to which also what is behind is verified a second time

struct Series {
  bool alive = false;
  bool told = false;  // the receiver learns of the end: only such a one is the best
  bool by_hand = false;
  Timed first, all;
  double first_us = 0;
  std::vector<std::pair<int, double>> visits;  // by round, the median of each
  Median behind;

  [[nodiscard]] std::vector<double> medians() const {
    std::vector<double> values;
    values.reserve(visits.size());
    for (const auto& [round, value] : visits) values.push_back(value);
    return values;
  }
  [[nodiscard]] std::array<double, 2> halves() const {
    if (visits.size() < 2) return {median(), median()};
    std::array<std::vector<double>, 2> of;
    for (const auto& [round, value] : visits) of.at(static_cast<std::size_t>(round) % 2).push_back(value);
    return {median_of(of[0]).value, median_of(of[1]).value};
  }
  [[nodiscard]] double median() const { return visits.empty() ? first_us : median_of(medians()).value; }
  [[nodiscard]] bool far_behind() const { return std::cmp_greater_equal(visits.size(), kFewestRounds) && behind.low > kFarBehind; }
  [[nodiscard]] bool settled() const {
    return visits.size() >= kFewestVisits && (behind.low > kBehind || behind.high - behind.low < kResolved);
  }
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

// How many times as long one takes as another, from the rounds that have both: what slows a round down slows both.
Median ratio_of(const Series& one, const Series& other) {
  std::vector<double> ratios;
  auto at = other.visits.begin();
  for (const auto& [round, value] : one.visits) {
    while (at != other.visits.end() && at->first < round) ++at;
    if (at != other.visits.end() && at->first == round) ratios.push_back(value / at->second);
  }
  return median_of(std::move(ratios));
}

class Measurement {
 public:
  Measurement(Workbench& bench, nic::Context& context, const Budget& budget)
      : bench_(bench), context_(context), budget_(budget), series_(bench.combinations().size()) {}

  Result<Report> run(std::int64_t began) {
    LACUNA_TRY(probe());
    const double stolen = stolen_ms();
    for (std::size_t i = 0; i < series_.size(); ++i) LACUNA_TRY(first(i));
    LACUNA_TRY(censor());
    const std::int64_t own = preemptions();
    const std::int64_t peers = bench_.peers_preemptions();
    const std::int64_t set_up = context_.now();
    LACUNA_TRY(rounds());
    const std::int64_t measured = context_.now();
    for (std::size_t i = 0; i < series_.size(); ++i) LACUNA_TRY(last(i));
    report_.conditions.preempted = preemptions() - own + bench_.peers_preemptions() - peers;
    report_.conditions.stolen_ms = stolen_ms() - stolen;
    LACUNA_TRY(probe());
    LACUNA_TRY(bench_.finish());
    report_.conditions.measuring_ms = static_cast<double>(measured - set_up) / 1e6;
    report_.conditions.setup_ms = static_cast<double>(context_.now() - began) / 1e6 - report_.conditions.measuring_ms;
    return std::move(report_);
  }

 private:
  Result<void> probe() {
    report_.conditions.probes.push_back(LACUNA_TRY(bench_.probe()));
    probed_ = context_.now();
    return {};
  }

  Result<Timed> visit(std::size_t i, std::int32_t samples, std::int32_t verify_seed) {
    return bench_.visit({.combination = static_cast<std::int32_t>(i), .samples = samples, .verify_seed = verify_seed});
  }

  void refuse(std::size_t i, std::string reason, bool wrong_data) {
    const Combination& c = bench_.combinations()[i];
    series_[i].alive = false;
    report_.refusals.push_back({std::string(c.method->name), c.endpoint->qp().path(), c.notify, std::move(reason), wrong_data});
  }

  Row row(std::size_t i) const {
    const Combination& c = bench_.combinations()[i];
    const Series& s = series_[i];
    Row row{.method = std::string(c.method->name), .path = c.endpoint->qp().path(), .notify = c.notify};
    row.latency_us = median_of(s.visits.empty() ? s.all.latency_us : s.medians());
    row.behind = s.behind;
    row.halves = s.halves();
    row.visits = static_cast<int>(s.visits.size());
    row.cpu_send_us = median_of(s.all.cpu_send_us).value;
    row.cpu_recv_us = median_of(s.all.cpu_recv_us).value;
    row.copy_send_us = median_of(s.all.copy_send_us).value;
    row.copy_recv_us = median_of(s.all.copy_recv_us).value;
    row.send = s.all.send;
    row.receive = s.all.receive;
    row.samples = static_cast<int>(s.all.latency_us.size());
    return row;
  }

  Result<void> first(std::size_t i) {
    const Combination& c = bench_.combinations()[i];
    if (!c.operation) return refuse(i, c.refusal, false), Result<void>{};
    const Timed timed = LACUNA_TRY(visit(i, 1, 0));
    if (!timed.wrong.empty()) return refuse(i, timed.wrong, true), Result<void>{};
    Series& s = series_[i];
    s.by_hand = is_by_hand(*c.method);
    s.told = !c.uninformed(1) && !s.by_hand;
    s.first_us = timed.latency_us.front();
    s.alive = true;
    s.first = timed;
    return {};
  }

  [[nodiscard]] bool hopeless(const Series& s, double best_us) const {
    const double times = s.first_us / best_us;
    if (s.first_us > budget_.censor_ms * 1e3) return true;
    if (s.by_hand) return false;  // everything is told against it
    return s.first_us > kTooLong.us ? times > kTooLong.times : s.first_us > kLong.us && times > kLong.times;
  }

  // What is hopeless after one verified transfer has one more chance, since somebody may have taken the core away, and
  // is not repeated then. A first transfer is slower than the others, but not by such factors.
  Result<void> censor() {
    double best_us = 1e300;
    for (const Series& s : series_) best_us = s.alive ? std::min(best_us, s.first_us) : best_us;
    for (std::size_t i = 0; i < series_.size(); ++i) {
      Series& s = series_[i];
      if (!s.alive || !hopeless(s, best_us)) continue;
      if (s.first_us < kNotTwice * budget_.censor_ms * 1e3) {
        s.first = LACUNA_TRY(visit(i, 1, -1));
        s.first_us = std::min(s.first_us, s.first.latency_us.front());
      }
      if (!hopeless(s, best_us)) continue;
      const double times = s.first_us / best_us;
      s.alive = false;
      s.add(s.first, 0);
      Row censored = row(i);
      censored.censored = true;
      censored.latency_us.value = s.first_us;
      censored.reason = s.first_us > budget_.censor_ms * 1e3
                            ? fmt::format("one transfer took longer than {:.0f} ms", budget_.censor_ms)
                            : fmt::format("its first transfers took at least {:.1f} times as long as the best one's", times);
      report_.rows.push_back(std::move(censored));
    }
    return {};
  }

  // Transfers in a row, more where they are short. A warm one finds its own staging warm: the first brings the caches
  // into that state and is not counted, unless it is so large that none of it stays there.
  struct Length {
    std::int32_t discarded, counted;
  };
  [[nodiscard]] Length visit_length(double latency_us) const {
    const bool stays = !bench_.what().cold() && bench_.what().send.size() <= cache_ / kStaysShare;
    return {stays ? 1 : 0, latency_us < 50 ? 7 : latency_us < 500 ? 4 : latency_us < 5000 ? 2 : 1};
  }

  // The fastest of those whose receiver is told; if there is none, of all.
  [[nodiscard]] const Series* best() const {
    const Series* found = nullptr;
    for (const bool told : {true, false}) {
      for (const Series& s : series_) {
        if (s.alive && s.told == told && (found == nullptr || s.median() < found->median())) found = &s;
      }
      if (found != nullptr) return found;
    }
    return found;
  }

  [[nodiscard]] bool wanted(const Series& s, double spent) const {
    if (!s.alive) return false;
    if (std::cmp_less(s.visits.size(), kFewestRounds)) return spent < kOvertime;
    return spent < 1 && std::cmp_less(s.all.latency_us.size(), budget_.max_samples) && !s.far_behind();
  }

  Result<void> rounds() {
    const std::int64_t began = context_.now();
    for (int round = 0; round < kMostRounds; ++round) {
      bool any = false;
      for (std::size_t k = 0; k < series_.size(); ++k) {
        const std::size_t i = (k + static_cast<std::size_t>(round)) % series_.size();
        Series& s = series_[i];
        if (!wanted(s, static_cast<double>(context_.now() - began) / (budget_.budget_ms * 1e6))) continue;
        const Length length = visit_length(s.median());
        const Timed timed = LACUNA_TRY(visit(i, length.discarded + length.counted, -1));
        s.add(timed, static_cast<std::size_t>(length.discarded));
        s.visits.emplace_back(round, median_of({timed.latency_us.begin() + length.discarded, timed.latency_us.end()}).value);
        any = true;
      }
      const Series* reference = best();
      if (!any || reference == nullptr) return {};
      for (Series& s : series_) s.behind = ratio_of(s, *reference);
      const auto known = [](const Series& s) { return !s.alive || s.far_behind() || s.settled(); };
      if (std::ranges::all_of(series_, known)) return {};
      if (context_.now() - probed_ > kBetweenProbes) LACUNA_TRY(probe());
    }
    return {};
  }

  Result<void> last(std::size_t i) {
    const Series& s = series_[i];
    if (!s.alive) return {};
    if (!s.far_behind() || bench_.what().send.size() <= kVerifiedTwice) {
      const Timed timed = LACUNA_TRY(visit(i, 1, 1));
      if (!timed.wrong.empty()) return refuse(i, timed.wrong, true), Result<void>{};
      if (s.all.latency_us.empty()) series_[i].add(timed, 0);
    }
    report_.rows.push_back(row(i));
    return {};
  }

  Workbench& bench_;
  nic::Context& context_;
  const Budget& budget_;
  std::vector<Series> series_;
  Report report_;
  std::int64_t probed_ = 0;  // when
  const std::int64_t cache_ = corpus::cache_bytes();
};

class PairLink final : public Link {
 public:
  PairLink(int rank, nic::Context& context, nic::Bootstrap& bootstrap, Fault fault)
      : rank_(rank),
        context_(context),
        bootstrap_(bootstrap),
        fault_(std::move(fault)),
        no_fault_{.skew_ns = fault_.skew_ns},
        limits_(context.limits()) {}

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
    if (endpoints_.empty()) {
      const std::string why = limits_.paths.empty() ? "it has none" : limits_.paths.front().note;
      return base::fail(base::Code::unsupported,
                        fmt::format("the two processes have no data path of NIC {} in common: {}", context_.nic_name(), why));
    }
    take_common_limits();
    mailbox_ = LACUNA_TRY(Mailbox::create(context_, bootstrap_, endpoints_.front()->qp().path()));
    wire_ = LACUNA_TRY(Wire::connect(context_, bootstrap_, endpoints_.front()->qp().path()));
    ground_ = std::make_unique<Ground>(LACUNA_TRY(Ground::create(context_)));
    return agree_on_room();
  }

  [[nodiscard]] const nic::Limits& limits() const override { return limits_; }

  Result<Report> measure(const Case& what, const Budget& budget) override {
    const std::int64_t began = context_.now();
    for (const std::string& name : budget.methods) {
      const auto known = [&](const method::Method& method) { return method.name == name; };
      if (std::ranges::none_of(measured_methods(), known)) LACUNA_TRY(method::find(name));
    }
    const std::int64_t needed = Workspace::bytes_on_ground(what);
    const bool fits = needed <= room_;
    if (fits) LACUNA_TRY(extend_ground(needed));
    Workbench bench(rank_, context_, *mailbox_, clocks(), what,
                    fits ? Workspace(*ground_, 0, what, rank_) : LACUNA_TRY(Workspace::apart(context_, what, rank_)), fault_);
    LACUNA_TRY(bench.set_up(endpoints_, budget, bootstrap_));
    if (what.cold()) evict();
    if (rank_ == 0) {
      Report report = LACUNA_TRY(Measurement(bench, context_, budget).run(began));
      report.conditions.clock_us = clocks_.uncertain_us();
      return report;
    }
    LACUNA_TRY(bench.follow());
    return Report{};
  }

  Result<Report> measure_keys(int entries, const Budget& budget) override {
    return measure::measure_keys(rank_, context_, wire_, *mailbox_, entries, budget);
  }

 private:
  // What both ends can do; the paths are as this end sees them.
  void take_common_limits() {
    nic::Limits both = endpoints_.front()->limits();
    both.paths = std::move(limits_.paths);
    limits_ = std::move(both);
    one_clock_ = limits_.shared_clock && !fault_.skew_ns;
  }

  // On two machines there may be more memory at one end: both have to say alike whether a case lies on the ground.
  Result<void> agree_on_room() {
    const std::int64_t mine = ground_->capacity();
    nic::Hello hello;
    hello.bytes.resize(sizeof mine);
    std::memcpy(hello.bytes.data(), &mine, sizeof mine);
    const nic::Hello answer = LACUNA_TRY(bootstrap_.exchange(hello, kAgreeTimeout));
    std::int64_t theirs = 0;
    if (answer.bytes.size() != sizeof theirs) return base::fail(base::Code::malformed, "the other rank did not say how much memory it has");
    std::memcpy(&theirs, answer.bytes.data(), sizeof theirs);
    if (theirs < 1) return base::fail(base::Code::malformed, fmt::format("the other rank has {} bytes of memory", theirs));
    room_ = std::min(mine, theirs);
    return {};
  }

  Clocks* clocks() { return one_clock_ ? nullptr : &clocks_; }

  // Both ranks extend alike. A peer's memory that this process reaches by itself costs a page fault at each page's
  // first touch: the price of mapping it, paid once, and here instead of in a measurement.
  Result<void> extend_ground(std::int64_t needed) {
    const std::int64_t from = ground_->used();
    const std::int64_t to = std::min(room_, (needed + kGroundStep - 1) / kGroundStep * kGroundStep);
    if (to <= from) return {};
    ground_->extend(to);
    Case all;
    all.send = LACUNA_TRY(Layout::bytes(to - from - 2 * kGuard));
    all.receive = all.send;
    all.send_span = all.receive_span = all.send.size();
    Workbench bench(rank_, context_, *mailbox_, clocks(), all, Workspace(*ground_, from, all, rank_), no_fault_);
    LACUNA_TRY(bench.set_up(endpoints_, {.methods = {"linked_write", "scatter_read"}, .notifies = {method::Notify::flag}}, bootstrap_));
    if (rank_ == 1) return bench.follow();
    for (std::size_t i = 0; i < bench.combinations().size(); ++i) {
      const Combination& c = bench.combinations()[i];
      const nic::PathInfo* path = c.endpoint->limits().path(c.endpoint->qp().path());
      if (c.operation && path != nullptr && path->shared_only)
        LACUNA_TRY(bench.visit({.combination = static_cast<std::int32_t>(i), .samples = 1}));
    }
    return bench.finish();
  }

  // Reads so much else that no cache holds anything of the ground.
  void evict() {
    if (sweep_.empty()) sweep_.assign(static_cast<std::size_t>(2 * corpus::cache_bytes()), 1);
    for (std::size_t at = 0; at < sweep_.size(); at += 64) *static_cast<volatile const char*>(&sweep_[at]);
  }

  static constexpr std::int64_t kGroundStep = 16 << 20;
  // ns: the other end may take its time to register memory
  static constexpr std::int64_t kAgreeTimeout = 20'000'000'000;

  int rank_;
  nic::Context& context_;
  nic::Bootstrap& bootstrap_;
  Fault fault_;
  Fault no_fault_;  // of transfers; the clocks stay what they are
  nic::Limits limits_;
  std::vector<std::unique_ptr<method::Endpoint>> endpoints_;
  std::unique_ptr<Mailbox> mailbox_;
  Wire wire_;
  std::unique_ptr<Ground> ground_;
  std::int64_t room_ = 0;  // of the ground, at both ends
  bool one_clock_ = true;
  Clocks clocks_;
  std::vector<char> sweep_;
};

}  // namespace

Result<std::unique_ptr<Link>> make_link(int rank, nic::Context& context, nic::Bootstrap& bootstrap, const Fault& fault) {
  auto link = std::make_unique<PairLink>(rank, context, bootstrap, fault);
  LACUNA_TRY(link->connect());
  return link;
}

}  // namespace lacuna::measure
