// What a choice costs: remembered, and new, for layouts of up to a thousand loops or a million blocks.
// `lacuna_choose_bench --benchmark_format=json` for machines.
#include <benchmark/benchmark.h>

#include <random>

#include "lacuna/guide/guide.hpp"

namespace {

namespace guide = lacuna::guide;
using lacuna::layout::Layout;

struct Pair {
  Layout src;
  Layout dst;
};

// As many bytes with a gap behind each: as many runs as can be.
Layout bytes_apart(std::int64_t bytes) { return Layout::hvector(bytes, 1, 2, Layout::bytes(1).value()).value(); }

Pair vectors() {
  return {Layout::hvector(1000, 1, 100, Layout::bytes(64).value()).value(),
          Layout::hvector(500, 1, 300, Layout::bytes(128).value()).value()};
}

Pair thousand_loops() {
  std::mt19937_64 random(1);
  std::vector<Layout> members;
  std::vector<std::int64_t> places;
  std::int64_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto count = static_cast<std::int64_t>(3 + random() % 50);
    const auto stride = static_cast<std::int64_t>(100 + random() % 1000);
    members.push_back(Layout::hvector(count, 1, stride, Layout::bytes(8 + static_cast<std::int64_t>(random() % 64)).value()).value());
    places.push_back(at);
    at += members.back().true_extent() + 64;
  }
  Layout all = Layout::structure(std::vector<std::int64_t>(members.size(), 1), places, members).value();
  Layout apart = bytes_apart(all.size());
  return {std::move(all), std::move(apart)};
}

Pair million_blocks() {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  std::int64_t at = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    offsets.push_back(at);
    lengths.push_back(8 + static_cast<std::int64_t>(random() % 100));
    at += lengths.back() + 8 + static_cast<std::int64_t>(random() % 64);
  }
  Layout all = Layout::blocks(offsets, lengths).value();
  Layout apart = bytes_apart(all.size());
  return {std::move(all), std::move(apart)};
}

void choose(benchmark::State& state, const Pair& pair, bool remembered) {
  guide::Guide chooser;
  const guide::PeerClass& peer = chooser.add(guide::limits_of("local").value(), guide::usual_profile("local"));
  for (auto _ : state) {
    if (!remembered) {
      state.PauseTiming();
      chooser.forget();
      state.ResumeTiming();
    }
    const auto choice = chooser.choose(pair.src, pair.dst, peer);
    if (!choice) return state.SkipWithError(choice.error().text().c_str());
    benchmark::DoNotOptimize(choice->plan.latency_ns);
  }
}

// As `lacuna guide` would have it that found the usual prices, but for pairs that it measured: cost items are priced at
// both.
guide::Profile measured_profile(const lacuna::nic::Limits& limits) {
  guide::Profile made = guide::usual_profile("local");
  made.classes.resize(1);
  for (const lacuna::nic::PathInfo& path : limits.paths)
    made.classes[0].paths.push_back({.path = path.path, .prices = guide::usual_prices(path.path), .biases = {}, .error_median = 0.05});
  return made;
}

// Of many pairs of two vectors, each asked for once: a miss without the pauses of the clock.
void choose_each_once(benchmark::State& state, bool measured) {
  std::vector<Layout> layouts;
  for (std::int64_t i = 0; i < 4096; ++i) layouts.push_back(Layout::hvector(100 + i, 1, 100, Layout::bytes(64).value()).value());
  guide::Guide chooser;
  const lacuna::nic::Limits limits = guide::limits_of("local").value();
  const guide::PeerClass& peer = chooser.add(limits, measured ? measured_profile(limits) : guide::usual_profile("local"));
  std::size_t next = 0;
  for (auto _ : state) {
    if (next == layouts.size()) {
      state.PauseTiming();
      chooser.forget();
      next = 0;
      state.ResumeTiming();
    }
    const Layout& layout = layouts[next++];
    benchmark::DoNotOptimize(chooser.choose(layout, layout, peer).has_value());
  }
}

const bool registered = [] {
  for (const auto& [name, pair] : {std::pair{"two vectors", vectors()},
                                   {"a thousand loops to single bytes", thousand_loops()},
                                   {"a million blocks to single bytes", million_blocks()}}) {
    for (const bool remembered : {true, false}) {
      benchmark::RegisterBenchmark((std::string(name) + (remembered ? ", remembered" : ", new")).c_str(), [pair = pair, remembered](
                                                                                                              benchmark::State& state) {
        choose(state, pair, remembered);
      })->Iterations(remembered ? 1'000'000 : 5'000);
    }
  }
  benchmark::RegisterBenchmark("two vectors, each once", choose_each_once, false);
  benchmark::RegisterBenchmark("two vectors, each once, by a profile", choose_each_once, true);
  return true;
}();

}  // namespace
