// The guide for Python: cost items at prices (for the fit), choices and explanations.
#include "core.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "lacuna/guide/guide.hpp"
#include "tools/corpus/cases.hpp"
#include "tools/worker/limits_json.hpp"

namespace lacuna::python {
namespace {

using guide::Way;
using layout::Layout;
using method::Price;

Way way_of(const std::string& method, const std::string& path, const std::string& notify) {
  const auto which = nic::path_from_name(path);
  const auto how = method::notify_from_name(notify);
  if (!which) throw nb::value_error(("no path \"" + path + "\"").c_str());
  if (!how) throw nb::value_error(("no notification \"" + notify + "\"").c_str());
  return {value_or_raise(method::find(method)), *which, *how};
}

// Many ways to move many pairs, priced at once: what a fit evaluates again and again.
class PricedWays {
 public:
  explicit PricedWays(const std::string& nic) : limits_(value_or_raise(measure::limits_from_json(nic))) {}

  void add(const std::string& method, const std::string& path, const std::string& notify, const Layout& send, const Layout& receive,
           bool cold) {
    const Way way = way_of(method, path, notify);
    if (limits_.path(way.path) == nullptr) throw nb::value_error(("the NIC has no path " + path).c_str());
    rows_.push_back({way, layout::outline(send, receive), cold});
  }

  // A row each: what biases are made of.
  [[nodiscard]] nb::ndarray<nb::numpy, double, nb::ndim<2>> features() const {
    auto* data = new double[rows_.size() * guide::kBiasFeatures];
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    for (std::size_t i = 0; i < rows_.size(); ++i)
      std::ranges::copy(guide::bias_features(rows_[i].pair, rows_[i].cold), data + i * guide::kBiasFeatures);
    return {data, {rows_.size(), guide::kBiasFeatures}, owner};
  }

  // A row each: latency, CPU time of the sender and of the receiver, nanoseconds.
  [[nodiscard]] nb::ndarray<nb::numpy, double, nb::ndim<2>> priced(const std::vector<double>& prices) const {
    if (prices.size() != method::kPrices) throw nb::value_error("a price for each name is needed");
    method::Prices all{};
    std::ranges::copy(prices, all.begin());
    auto* data = new double[rows_.size() * 3];
    const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      method::CostItems cost_items(all, *limits_.path(row.way.path), row.pair, row.cold);
      row.way.method->cost_items(cost_items, limits_);
      if (row.way.method->one_sided()) cost_items.notify(row.way.method->initiator, row.way.notify);
      data[3 * i] = cost_items.latency_ns();
      data[3 * i + 1] = cost_items.cpu_ns(method::Role::sender);
      data[3 * i + 2] = cost_items.cpu_ns(method::Role::receiver);
    }
    return {data, {rows_.size(), 3}, owner};
  }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    Way way;
    layout::PairOutline pair;
    bool cold;
  };
  nic::Limits limits_;
  std::vector<Row> rows_;
};

guide::Placement placement_of(const std::string& objective, bool cold, bool told, bool src_shared, bool dst_shared, double uses) {
  const auto which = guide::objective_from_name(objective);
  if (!which) throw nb::value_error(("no objective \"" + objective + "\"; there are: latency, bandwidth, cpu").c_str());
  return {.src_shared = src_shared,
          .dst_shared = dst_shared,
          .cold = cold,
          .told = told,
          .uses = static_cast<float>(uses),
          .objective = *which};
}

// A Guide with the peers of one NIC, for Python.
class Chooser {
 public:
  Chooser(const std::string& nic, double message_us, const std::string& limits, const std::string& profile)
      : guide_(value_or_raise(guide::Force::from_environment())),
        peer_(&guide_.add(value_or_raise(limits.empty() ? guide::limits_of(nic) : measure::limits_from_json(limits)),
                          profile.empty() ? guide::find_profile(nic) : value_or_raise(guide::read_profile(profile)), message_us)) {}

  nb::dict choose(const Layout& src, const Layout& dst, const std::string& objective, bool cold, bool told, bool src_shared,
                  bool dst_shared, double uses) {
    const guide::Choice choice =
        value_or_raise(guide_.choose(src, dst, *peer_, placement_of(objective, cold, told, src_shared, dst_shared, uses)));
    nb::dict made = described(choice.way);
    made["predicted_us"] = choice.plan.latency_ns / 1e3;
    made["cpu_send_us"] = choice.plan.cpu_ns[0] / 1e3;
    made["cpu_recv_us"] = choice.plan.cpu_ns[1] / 1e3;
    return made;
  }

  // The text, and the candidates as data. `measured`: microseconds by method, path and notification.
  nb::tuple explain(const Layout& src, const Layout& dst, const std::string& objective, bool cold, bool told, bool src_shared,
                    bool dst_shared, double uses, const nb::dict& measured) const {
    guide::Explanation why =
        value_or_raise(guide_.explain(src, dst, *peer_, placement_of(objective, cold, told, src_shared, dst_shared, uses)));
    nb::list candidates;
    for (guide::Candidate& candidate : why.candidates) {
      nb::dict row = described(candidate.way);
      if (candidate.way == why.usual) row["usual"] = true;
      const nb::tuple key = nb::make_tuple(row["method"], row["path"], row["notify"]);
      if (measured.contains(key)) candidate.measured_us = nb::cast<double>(measured[key]);
      if (candidate.refusal.empty()) {
        nb::dict stages;
        for (std::size_t i = 0; i < method::kStages; ++i)
          stages[nb::str(std::string(method::stage_name(static_cast<method::Stage>(i))).c_str())] = candidate.stages_ns[i] / 1e3;
        row["predicted_us"] = candidate.plan.latency_ns / 1e3;
        row["cpu_send_us"] = candidate.plan.cpu_ns[0] / 1e3;
        row["cpu_recv_us"] = candidate.plan.cpu_ns[1] / 1e3;
        row["stages_us"] = stages;
        row["crossover"] = candidate.crossover;
        if (candidate.measured_us > 0) row["measured_us"] = candidate.measured_us;
      } else {
        row["refused"] = candidate.refusal;
      }
      candidates.append(row);
    }
    return nb::make_tuple(guide::describe(why), candidates);
  }
  [[nodiscard]] std::vector<std::string> warnings() const { return peer_->profile().warnings; }

 private:
  static nb::dict described(const Way& way) {
    nb::dict made;
    made["method"] = std::string(way.method->name);
    made["path"] = std::string(nic::path_name(way.path));
    made["notify"] = std::string(method::notify_name(way.notify));
    return made;
  }
  guide::Guide guide_;
  const guide::PeerClass* peer_;
};

nb::tuple case_of(const std::string& layout, const std::string& shape, bool cold) {
  const corpus::Case what = value_or_raise(corpus::case_from_json(layout, shape, cold));
  return nb::make_tuple(what.send, what.receive);
}

void bind_choosing(nb::module_& m) {
  nb::class_<PricedWays>(m, "PricedWays", "Ways to move pairs of layouts, to be priced together. `nic`: a worker's limits, JSON.")
      .def(nb::init<const std::string&>(), "nic"_a)
      .def("add", &PricedWays::add, "method"_a, "path"_a, "notify"_a, "send"_a, "receive"_a, "cold"_a = false)
      .def("priced", &PricedWays::priced, "prices"_a, "A row each: latency, CPU time of sender and receiver, in nanoseconds.")
      .def("features", &PricedWays::features, "A row each: what biases are sums of.")
      .def("__len__", &PricedWays::size);
  nb::class_<Chooser>(
      m, "Guide",
      "Chooses the way to move one layout into another, and says why. `nic`: local, model, model:PLATFORM. `message_us`: what a "
      "message of 16 KiB takes to the peer, if that is known. `limits` (a worker's, JSON) and `profile` (a file) replace what is found.")
      .def(nb::init<const std::string&, double, const std::string&, const std::string&>(), "nic"_a = "local", "message_us"_a = 0.0,
           "limits"_a = "", "profile"_a = "")
      .def("choose", &Chooser::choose, "send"_a, "receive"_a, "objective"_a = "latency", "cold"_a = false, "told"_a = true,
           "src_shared"_a = true, "dst_shared"_a = true, "uses"_a = 0.0,
           "The best way: method, path, notify, predicted_us and CPU times. Objectives: latency, bandwidth, cpu. `told`: the passive end "
           "has to learn "
           "that it is over. Shared: the memory is Lacuna's own, which some paths need. `uses`: transfers for which a binding of keys "
           "holds; 0: any number.")
      .def("explain", &Chooser::explain, "send"_a, "receive"_a, "objective"_a = "latency", "cold"_a = false, "told"_a = true,
           "src_shared"_a = true, "dst_shared"_a = true, "uses"_a = 0.0, "measured"_a = nb::dict(),
           "All ways, as text and as data: expected times by stage, why each lost, where it would win.")
      .def_prop_ro("warnings", &Chooser::warnings, "What is doubtful about the profile.");
}

// What profiles are made of, as the fit needs it.
void bind_prices(nb::module_& m) {
  m.def(
      "price_names",
      [] {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < method::kPrices; ++i) names.emplace_back(method::price_name(static_cast<Price>(i)));
        return names;
      },
      "What a path asks for, in the order of prices.");
  m.def(
      "usual_prices",
      [](const std::string& path, double message_us) {
        const auto which = nic::path_from_name(path);
        if (!which) throw nb::value_error(("no path \"" + path + "\"").c_str());
        const method::Prices& prices = guide::usual_prices(*which, message_us);
        return std::vector<double>(prices.begin(), prices.end());
      },
      "path"_a, "message_us"_a = 0.0, "Prices where nothing was measured.");
  m.def("bias_limit", [] { return guide::kMostBias; }, "The largest factor on a expected time.");
  m.def("same_class", &guide::Profile::same_class, "message_us"_a, "other_us"_a,
        "Whether peers to which a message of 16 KiB takes so long are alike; 0, where that is not known, is like any.");
  m.def("speed_factor", &guide::Profile::speed_factor, "message_us"_a, "class_us"_a,
        "How many times as long as usual in a class of peers transfers take while a message of 16 KiB takes so long.");
  m.def("hysteresis_of", &guide::PeerClass::hysteresis_of, "error_median"_a,
        "What is usually best is left only for a way that it is expected to take 1 + hysteresis times as long as, where nothing near was "
        "measured.");
  m.def("prior_weight", [] { return guide::Nearby::kPriorWeight; }, "So many near pairs say that cost items and biases are right.");
}

void bind_pairs(nb::module_& m) {
  m.def(
      "describe", [](const Layout& layout) { return guide::describe(layout); }, "layout"_a,
      "A layout in words: runs, form, kernels, histogram.");
  m.def("case_layouts", &case_of, "layout"_a, "shape"_a = "symmetric", "cold"_a = false,
        "The two layouts that a worker makes of a request's `layout`, JSON text.");
  m.def(
      "pair_numbers",
      [](const Layout& send, const Layout& receive) {
        const auto numbers = guide::numbers_of(layout::outline(send, receive));
        return std::vector<double>(numbers.begin(), numbers.end());
      },
      "send"_a, "receive"_a,
      "A pair as a profile keeps it: of either side bytes, runs, span, stride, listed, uneven; then pieces and paired.");
  m.def(
      "pair_place",
      [](const Layout& send, const Layout& receive) {
        const auto place = guide::Nearby::place_of(layout::outline(send, receive));
        return std::vector<double>(place.begin(), place.end());
      },
      "send"_a, "receive"_a, "Where a pair is among others: at distance d another's measurements weigh exp(-d*d/2).");
}

void bind_files(nb::module_& m) {
  m.def("machine_name", &guide::machine_name, "This machine in a few words, as profiles name it.");
  m.def(
      "check_profile", [](const std::string& file) { static_cast<void>(value_or_raise(guide::read_profile(file))); }, "file"_a,
      "Raises ValueError where the file is no profile that the library can read.");
  m.def("profile_file", &guide::profile_file, "nic"_a, "Where the profile of a NIC is, or would be.");
  m.def("nic_label", &guide::nic_label, "nic"_a, "The same name for the same NIC: local, model:connectx5-rocev2.");
}

}  // namespace

void bind_guide(nb::module_& m) {
  bind_choosing(m);
  bind_prices(m);
  bind_pairs(m);
  bind_files(m);
}

}  // namespace lacuna::python
