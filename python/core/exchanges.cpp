// Exchanges among all ranks for Python, with the arrays that they hold; and what they take on a simulated NIC.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "lacuna/collective/collective.hpp"
#include "lacuna/nic/world.hpp"
#include "meet.hpp"
#include "ranks.hpp"

namespace lacuna::python {
namespace {

using collective::Exchange;
using collective::Options;

/// A rank, an array, and where a layout lies in it.
using Block = std::tuple<int, nb::object, std::optional<Layout>, std::int64_t>;
using Blocks = std::vector<std::int64_t>;

// A schedule that is none goes on: the other ranks have to be told.
Options options_of(const std::string& schedule, int window) {
  Options options{.window = window};
  options.schedule = collective::schedule_from_name(schedule).value_or(collective::Schedule::unknown);
  return options;
}

class Ongoing final : public Ends {
 public:
  explicit Ongoing(Ranks& ranks) : ranks_(ranks) {}
  std::byte* keep(const nb::object& object, bool writable, const std::optional<Layout>& layout, std::int64_t offset) {
    arrays_.push_back(std::make_unique<Array>(object, writable));
    return arrays_.back()->base(layout, offset);
  }
  [[nodiscard]] const Layout& last() const { return arrays_.back()->layout(); }
  void begins(std::unique_ptr<Exchange> exchange) { exchange_ = std::move(exchange); }
  void end() override {
    exchange_.reset();
    arrays_.clear();
  }

  void start() {
    const Ranks::Entered entered(ranks_);
    value_or_raise(get().start());
  }
  bool test() {
    const Ranks::Entered entered(ranks_);
    return value_or_raise(get().test());
  }
  // In slices, so that Python's signals are looked at. timeout_s < 0: for ever.
  void wait(double timeout_s) {
    for (const std::int64_t began = base::now_ns();;) {
      const Ranks::Entered entered(ranks_);
      Exchange& exchange = get();
      Result<bool> done;
      {
        const nb::gil_scoped_release unlocked;
        done = exchange.wait_for(kSlice);
      }
      if (value_or_raise(std::move(done))) return;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (timeout_s >= 0 && static_cast<double>(base::now_ns() - began) * 1e-9 > timeout_s) {
        end();
        value_or_raise<void>(base::fail(base::Code::timeout, "the exchange was given up: some rank did not take part"));
      }
    }
  }
  std::string explain() { return get().explain(); }
  std::optional<std::string> schedule() {
    const auto& choice = get().choice();
    return choice ? std::optional(std::string(collective::schedule_name(choice->schedule))) : std::nullopt;
  }

 private:
  Exchange& get() {
    if (exchange_ == nullptr) throw nb::value_error("this exchange was given up, or its communicator closed");
    return *exchange_;
  }
  Ranks& ranks_;
  std::vector<std::unique_ptr<Array>> arrays_;
  std::unique_ptr<Exchange> exchange_;
};

std::shared_ptr<Ongoing> made(Ranks& ranks, const std::shared_ptr<Ongoing>& ongoing, std::unique_ptr<Exchange> exchange) {
  ongoing->begins(std::move(exchange));
  ranks.ends(ongoing);
  return ongoing;
}

std::shared_ptr<Ongoing> exchange(Ranks& ranks, const std::vector<Block>& out, const std::vector<Block>& in, bool all,
                                  const std::string& schedule, int window) {
  auto ongoing = std::make_shared<Ongoing>(ranks);
  std::vector<collective::Send> sends;
  std::vector<collective::Receive> receives;
  std::vector<collective::Source> sources;
  std::vector<collective::Target> targets;
  for (const auto& [rank, object, layout, offset] : out) {
    collective::Source what;
    if (!object.is_none()) {
      what.base = ongoing->keep(object, false, layout, offset);
      what.layout = ongoing->last();
    }
    sends.push_back({rank, what});
    sources.push_back(what);
  }
  for (const auto& [rank, object, layout, offset] : in) {
    collective::Target where;
    if (!object.is_none()) {
      where.base = ongoing->keep(object, true, layout, offset);
      where.layout = ongoing->last();
    }
    receives.push_back({rank, where});
    targets.push_back(where);
  }
  const Ranks::Entered entered(ranks);
  const Options options = options_of(schedule, window);
  return made(ranks, ongoing,
              all ? collective::alltoallw_init(ranks.get(), sources, targets, options)
                  : collective::neighbor_exchange_init(ranks.get(), sends, receives, options));
}

std::shared_ptr<Ongoing> transpose(Ranks& ranks, const nb::object& before, const nb::object& after, const std::vector<std::int64_t>& sizes,
                                   const Blocks& row_blocks, const Blocks& column_blocks, const std::string& schedule, int window) {
  auto ongoing = std::make_shared<Ongoing>(ranks);
  const void* from = ongoing->keep(before, false, std::nullopt, 0);
  void* to = ongoing->keep(after, true, std::nullopt, 0);
  const Ranks::Entered entered(ranks);
  return made(ranks, ongoing,
              collective::transpose_init(ranks.get(),
                                         {.rows = sizes.at(0),
                                          .columns = sizes.at(1),
                                          .element_bytes = sizes.at(2),
                                          .row_blocks = row_blocks,
                                          .column_blocks = column_blocks,
                                          .leading_before = sizes.at(3),
                                          .leading_after = sizes.at(4)},
                                         from, to, options_of(schedule, window)));
}

// --- on a simulated NIC ----------------------------------------------------------------------------------------------

struct Simulated {
  nic::World& world;
  std::string nic;                                   // by which the guide finds its profile
  const std::vector<std::pair<int, int>>& messages;  // from, to; each pair once
  const Layout& layout;
  const method::Method* method;
  bool left_registered;
  int before;  // exchanges, before the one that is measured
  Options options;
  std::vector<std::int64_t> began, ended, busy;  // by rank
  std::string schedule;

  // Every block has another pattern; gaps are 0.
  void write(int from, int to, std::byte* base) const {
    layout::Cursor cursor(layout);
    for (layout::Run run = cursor.next_run(layout::kMaxBytes); run.length > 0; run = cursor.next_run(layout::kMaxBytes)) {
      for (std::int64_t i = run.offset; i < run.offset + run.length; ++i)
        base[i] = static_cast<std::byte>(1 + (from * 31 + to * 17 + i * 7) % 251);
    }
  }

  Result<void> run(int rank) {
    const int size = world.ranks();
    nic::Context& context = world.context(rank);
    protocol::Options settings{.eager_bytes = 256,
                               // The method moves every block, whatever its size
                               .force = {.method = method, .path = {}}};
    if (!left_registered) settings.registered_entries = 0;
    const auto ranks = LACUNA_TRY(protocol::Communicator::create(context, nic, protocol::form_group(world, rank), settings));
    const auto span = static_cast<std::size_t>(layout.true_lower_bound() + layout.true_extent());
    const nic::Buffer out = LACUNA_TRY(context.allocate(span * static_cast<std::size_t>(size)));
    const nic::Buffer in = LACUNA_TRY(context.allocate(span * static_cast<std::size_t>(size)));
    std::vector<collective::Send> sends;
    std::vector<collective::Receive> receives;
    for (const auto& [from, to] : messages) {
      if (from == rank) {
        std::byte* base = out.data() + static_cast<std::size_t>(to) * span;
        write(from, to, base);
        sends.push_back({to, {base, layout}});
      }
      if (to == rank) receives.push_back({from, {in.data() + static_cast<std::size_t>(from) * span, layout}});
    }
    const auto exchange = collective::neighbor_exchange_init(*ranks, sends, receives, options);
    for (int done = 0; done <= before; ++done) {
      const bool measured = done == before;
      LACUNA_TRY(meet(*ranks));
      const auto own = static_cast<std::size_t>(rank);
      if (measured) {
        began[own] = context.now();
        busy[own] = context.busy_ns();
      }
      LACUNA_TRY(exchange->start());
      LACUNA_TRY(exchange->wait());
      if (measured) {
        ended[own] = context.now();
        busy[own] = context.busy_ns() - busy[own];
      }
    }
    if (rank == 0) schedule = collective::schedule_name(exchange->choice()->schedule);
    LACUNA_TRY(check(rank, in, span));
    return meet(*ranks);
  }

  Result<void> check(int rank, const nic::Buffer& in, std::size_t span) const {
    std::vector<std::byte> wanted(span);
    for (const auto& [from, to] : messages) {
      if (to != rank) continue;
      std::ranges::fill(wanted, std::byte{});
      write(from, rank, wanted.data());
      if (std::memcmp(wanted.data(), in.data() + static_cast<std::size_t>(from) * span, span) != 0)
        return base::fail(base::Code::transfer,
                          "rank " + std::to_string(rank) + " has other bytes than rank " + std::to_string(from) + " sent");
    }
    return {};
  }
};

// (latency in us from the first rank's start to the last one's end, CPU time in us of a rank, schedule)
std::tuple<double, double, std::string> simulate_exchange(const std::string& profile, int ranks,
                                                          const std::vector<std::pair<int, int>>& messages, const Layout& layout,
                                                          const std::string& method_name, const std::string& schedule, int window,
                                                          bool left_registered, int before) {
  const auto world = value_or_raise(nic::simulate({.profile = profile, .overrides = {}, .ranks = ranks, .limits = {}}));
  for (const auto& [from, to] : messages) {
    if (from < 0 || from >= ranks || to < 0 || to >= ranks)
      throw nb::value_error(
          ("a message from " + std::to_string(from) + " to " + std::to_string(to) + "; ranks are 0 to " + std::to_string(ranks - 1))
              .c_str());
  }
  const std::set<std::pair<int, int>> once(messages.begin(), messages.end());
  if (once.size() != messages.size()) throw nb::value_error("the same message twice; a rank receives each into memory of its own");
  if (before < 0) throw nb::value_error("before: a number of exchanges");
  const auto n = static_cast<std::size_t>(ranks);
  const method::Method* method = method_name.empty() ? nullptr : value_or_raise(method::find(method_name));
  Simulated simulated{*world,
                      "model:" + profile,
                      messages,
                      layout,
                      method,
                      left_registered,
                      before,
                      options_of(schedule, window),
                      std::vector<std::int64_t>(n),
                      std::vector<std::int64_t>(n),
                      std::vector<std::int64_t>(n),
                      {}};
  Result<void> ran;
  {
    const nb::gil_scoped_release unlocked;
    ran = world->run([&](int rank) { return simulated.run(rank); });
  }
  value_or_raise(std::move(ran));
  double cpu = 0;
  for (const std::int64_t busy : simulated.busy) cpu += static_cast<double>(busy) / 1000 / ranks;
  const std::int64_t took = *std::ranges::max_element(simulated.ended) - *std::ranges::min_element(simulated.began);
  return {static_cast<double>(took) / 1000, cpu, simulated.schedule};
}

}  // namespace

void bind_exchanges(nb::module_& m) {
  nb::class_<Ongoing>(m, "Ongoing", "An exchange among all ranks, with the memory that it uses; lacuna.Exchange wraps it.")
      .def("start", &Ongoing::start)
      .def("test", &Ongoing::test)
      .def("wait", &Ongoing::wait, "timeout"_a)
      .def("explain", &Ongoing::explain)
      .def_prop_ro("schedule", &Ongoing::schedule);
  m.def("exchange", &exchange, "ranks"_a, "sends"_a, "receives"_a, "everyone"_a, "schedule"_a, "window"_a, nb::keep_alive<0, 1>());
  m.def("transpose", &transpose, "ranks"_a, "before"_a, "after"_a, "sizes"_a, "row_blocks"_a, "column_blocks"_a, "schedule"_a, "window"_a,
        nb::keep_alive<0, 1>());
  m.def("simulate_exchange", &simulate_exchange, "profile"_a, "ranks"_a, "messages"_a, "layout"_a, "method"_a, "schedule"_a, "window"_a,
        "left_registered"_a, "before"_a = 1,
        "An exchange of `messages`, pairs (from, to), each of one layout, on a simulated NIC, after `before` others: its time in "
        "microseconds "
        "from the first rank's start to the last "
        "one's end, the "
        "CPU time of a rank, and the schedule. Each message goes by `method`, or as is best where it is empty; its memory was left "
        "registered "
        "the first time, or is registered anew. Every byte is compared.");
}

}  // namespace lacuna::python
