// What a hand-over of a KV cache costs the CPU before anything moves: layouts from page tables, a method's plan, and
// all its requests, on a NIC that moves nothing (tools/handover/posting_nic.hpp). `lacuna_plan_bench
// --benchmark_format=json` for machines; times are CPU times, medians over the iterations.
//
//   plan/...        two paged layouts of 100 000 blocks, from the page numbers to operations that are ready to be
//                   started: both layouts in canonical form with their digests, whether the destination overlaps, cuts
//                   and indirect keys or copy plans, at both ends
//   hand_over/...   168 000 blocks of 576 B, every eighth row of a cache of latent attention, to pages of 64 or 16
//                   rows, or rows anywhere: planning as above, and posting: every request in the queue, every
//                   completion polled; ns for each block
//
// Each ends with a transfer whose requests are carried out as they were posted, and compared, gaps included, with a
// loop over the page numbers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "tools/handover/cache.hpp"
#include "tools/handover/posting.hpp"

namespace {

using lacuna::base::Result;
using lacuna::layout::Layout;
namespace method = lacuna::method;
namespace handover = lacuna::handover;
using Offsets = std::vector<std::int64_t>;

// Layouts as a server would make them, and where block i lies, without layouts.
struct HandOver {
  std::int64_t block_bytes = 0;
  Offsets src_at, dst_at;
  std::int64_t src_span = 0, dst_span = 0;
  std::function<Result<Layout>()> src, dst;
  [[nodiscard]] std::int64_t blocks() const { return std::ssize(src_at); }
};

// Memory that the system gives out as it is touched: of a source with gaps seven eighths are not.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)), data_(static_cast<std::byte*>(std::calloc(bytes_, 1))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

Memory source_of(const HandOver& what) {
  Memory memory(what.src_span);
  for (std::int64_t i = 0; i < what.blocks(); ++i) {
    std::byte* block = memory.bytes().data() + what.src_at[static_cast<std::size_t>(i)];
    for (std::int64_t at = 0; at + 8 <= what.block_bytes; at += 8) {
      const std::uint64_t word = (static_cast<std::uint64_t>(i) << 20 | static_cast<std::uint64_t>(at)) * 0x9e3779b97f4a7c15U;
      std::memcpy(block + at, &word, sizeof word);
    }
  }
  return memory;
}

Offsets times(const Offsets& numbers, std::int64_t factor) {
  Offsets offsets(numbers.size());
  std::ranges::transform(numbers, offsets.begin(), [&](std::int64_t number) { return number * factor; });
  return offsets;
}

// Pages here to pages there, each in an order of its own, out of twice as many.
HandOver two_page_tables(std::int64_t blocks, std::int64_t block_bytes) {
  HandOver what{.block_bytes = block_bytes};
  const auto here = std::make_shared<const Offsets>(handover::page_table(blocks, 2, 1));
  const auto there = std::make_shared<const Offsets>(handover::page_table(blocks, 2, 2));
  what.src_at = times(*here, block_bytes);
  what.dst_at = times(*there, block_bytes);
  what.src_span = what.dst_span = 2 * blocks * block_bytes;
  what.src = [=] { return Layout::paged(block_bytes, *here); };
  what.dst = [=] { return Layout::paged(block_bytes, *there); };
  return what;
}

// Every eighth row, to pages of so many rows.
HandOver every_eighth_row(std::int64_t blocks, std::int64_t block_bytes, std::int64_t page_rows) {
  HandOver what{.block_bytes = block_bytes};
  const std::int64_t stride = 8 * block_bytes;
  const std::int64_t page_bytes = page_rows * block_bytes;
  const auto pages = std::make_shared<const Offsets>(handover::page_table(blocks / page_rows, 2, 3));
  for (std::int64_t i = 0; i < blocks; ++i) {
    what.src_at.push_back(i * stride);
    what.dst_at.push_back((*pages)[static_cast<std::size_t>(i / page_rows)] * page_bytes + i % page_rows * block_bytes);
  }
  what.src_span = blocks * stride;
  what.dst_span = 2 * blocks * block_bytes;
  what.src = [=]() -> Result<Layout> { return Layout::hvector(blocks, 1, stride, LACUNA_TRY(Layout::bytes(block_bytes))); };
  what.dst = [=] { return Layout::paged(page_bytes, *pages); };
  return what;
}

Result<method::Transfer> transfer_of(const HandOver& what, const method::Method& how) {
  return method::Transfer{LACUNA_TRY(what.src()), LACUNA_TRY(what.dst()), how.one_sided() ? method::Notify::flag : method::Notify::none};
}

// Carries out what is posted. What is wrong with it; empty if nothing is.
Result<std::string> moves_rightly(const HandOver& what, const method::Method& how, std::span<std::byte> src) {
  std::vector<std::byte> dst(static_cast<std::size_t>(what.dst_span));
  std::ranges::fill(dst, std::byte{0xa5});
  handover::PostingBench bench = LACUNA_TRY(handover::PostingBench::create(how, LACUNA_TRY(transfer_of(what, how)), src, dst));
  bench.moves(true);
  LACUNA_TRY(bench.post());
  LACUNA_TRY(bench.land());
  // A block that is right turns into what the gaps hold: then all of it must.
  for (std::int64_t i = 0; i < what.blocks(); ++i) {
    std::byte* arrived = dst.data() + what.dst_at[static_cast<std::size_t>(i)];
    const auto bytes = static_cast<std::size_t>(what.block_bytes);
    if (std::memcmp(arrived, src.data() + what.src_at[static_cast<std::size_t>(i)], bytes) != 0)
      return "block " + std::to_string(i) + " did not arrive";
    std::memset(arrived, 0xa5, bytes);
  }
  return std::ranges::all_of(dst, [](std::byte byte) { return byte == std::byte{0xa5}; }) ? "" : "a gap was written to";
}

void measure(benchmark::State& state, const HandOver& what, const method::Method& how, bool posts) {
  const Memory source = source_of(what);
  const std::span<std::byte> here = source.bytes();
  // Addresses alone: nothing is touched.
  const std::span<std::byte> there(reinterpret_cast<std::byte*>(std::uintptr_t{1} << 45), static_cast<std::size_t>(what.dst_span));
  std::vector<double> layouts, plans, post, all;
  for (auto _ : state) {
    const std::int64_t began = handover::cpu_ns();
    const Result<method::Transfer> transfer = transfer_of(what, how);
    const std::int64_t made = handover::cpu_ns();
    if (!transfer) return state.SkipWithError(transfer.error().text().c_str());
    auto bench = handover::PostingBench::create(how, *transfer, here, there);
    if (!bench) return state.SkipWithError(bench.error().text().c_str());
    double total = static_cast<double>(made - began) + bench->plan_ns();
    layouts.push_back(static_cast<double>(made - began));
    plans.push_back(bench->plan_ns());
    if (posts) {
      const Result<double> posted = bench->post();
      if (!posted) return state.SkipWithError(posted.error().text().c_str());
      post.push_back(*posted);
      total += *posted;
    }
    all.push_back(total);
    state.SetIterationTime(total / 1e9);
  }
  const auto blocks = static_cast<double>(what.blocks());
  state.counters["blocks"] = blocks;
  state.counters["total_us"] = handover::median(all) / 1e3;
  state.counters["layouts_us"] = handover::median(layouts) / 1e3;
  state.counters["plan_us"] = handover::median(plans) / 1e3;
  if (posts) {
    state.counters["post_us"] = handover::median(post) / 1e3;
    state.counters["ns_per_block"] = handover::median(all) / blocks;
    state.counters["post_ns_per_block"] = handover::median(post) / blocks;
  }
  const Result<std::string> wrong = moves_rightly(what, how, here);
  if (!wrong) return state.SkipWithError(wrong.error().text().c_str());
  if (!wrong->empty()) state.SkipWithError(wrong->c_str());
}

const bool registered = [] {
  struct Named {
    std::string name;
    HandOver what;
    bool posts;
  };
  // Made once, and kept by what is registered.
  const auto all = std::make_shared<const std::vector<Named>>(std::vector<Named>{
      {"plan/two_paged_layouts_100000", two_page_tables(100'000, 256), false},
      {"hand_over/168000_rows_to_pages_of_64", every_eighth_row(168'000, 576, 64), true},
      {"hand_over/168000_rows_to_pages_of_16", every_eighth_row(168'000, 576, 16), true},
      {"hand_over/168000_rows_to_rows_anywhere", every_eighth_row(168'000, 576, 1), true},
  });
  for (const Named& named : *all) {
    for (const method::Method& how : method::methods()) {
      if (!how.one_sided() || !handover::sender_posts(how)) continue;  // what a NIC without a peer can carry out
      benchmark::RegisterBenchmark((named.name + "/" + std::string(how.name)).c_str(),
                                   [&named, &how, all](benchmark::State& state) { measure(state, named.what, how, named.posts); })
          ->Iterations(21)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
