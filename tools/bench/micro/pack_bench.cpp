// pack() of DDTBench layouts, warm, against memcpy of as many contiguous bytes. `lacuna_pack_bench
// --benchmark_format=json` for machines.
#include <benchmark/benchmark.h>

#include <cstring>

#include "lacuna/copy/copy.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace {

void pack_layout(benchmark::State& state, const std::string& family, int size) {
  const lacuna::corpus::DdtCase ddt = lacuna::corpus::ddtbench(family, size).value();
  const auto bytes = ddt.send.size();
  std::vector<std::byte> source(static_cast<std::size_t>(ddt.send_span));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 31 + (i >> 9));
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
  std::vector<std::byte> expected(packed.size());
  lacuna::copy::reference::pack(ddt.send, source.data(), 0, bytes, expected.data());
  for (auto _ : state) {
    lacuna::copy::pack(ddt.send, source.data(), 0, bytes, packed.data());
    benchmark::ClobberMemory();
  }
  if (packed != expected) state.SkipWithError("the packed bytes are not the reference's");
  state.SetBytesProcessed(state.iterations() * bytes);
}

void contiguous(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> source(bytes, std::byte{7});
  std::vector<std::byte> target(bytes);
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  if (target != source) state.SkipWithError("the copied bytes differ");
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(contiguous)->Arg(64 << 10)->Arg(1 << 20);

const bool registered = [] {
  for (const std::string& family : lacuna::corpus::ddtbench_families())
    benchmark::RegisterBenchmark(("pack/" + family).c_str(), pack_layout, family, 0);
  return true;
}();

}  // namespace
