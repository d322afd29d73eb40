#include "tools/handover/posting.hpp"

#include "tools/handover/crew.hpp"

#include <algorithm>

namespace lacuna::handover {
namespace {}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

Result<PostingBench> PostingBench::create(const method::Method& method, const method::Transfer& transfer, std::span<std::byte> src,
                                          std::span<std::byte> dst) {
  PostingBench bench;
  Nobody nobody;
  bench.nic_ = std::make_unique<PostingNic>();
  bench.regions_ = std::make_unique<Regions>();
  bench.regions_->src = LACUNA_TRY(bench.nic_->register_memory(src, {}, nic::MemoryKind::host));
  bench.regions_->dst = LACUNA_TRY(bench.nic_->register_memory(dst, {}, nic::MemoryKind::host));
  bench.here_ = LACUNA_TRY(method::Endpoint::connect(*bench.nic_, nobody, nic::Path::wire));
  bench.there_ = LACUNA_TRY(method::Endpoint::connect(*bench.nic_, nobody, nic::Path::wire));
  // Memory for packed data belongs to an endpoint, which keeps it from one transfer to the next.
  const bool copies = method.exposes == method::Exposes::nothing;
  if (copies) LACUNA_TRY(bench.here_->staging(transfer.src.size()));
  if (copies && method.one_sided()) LACUNA_TRY(bench.there_->staging(transfer.dst.size()));
  const std::int64_t began = cpu_ns();
  if (copies) {
    copy::prepare(transfer.src);
    copy::prepare(transfer.dst);
  }
  bench.sender_ = LACUNA_TRY(method::make(method, method::Role::sender, *bench.here_, transfer, {&bench.regions_->src}));
  LACUNA_TRY(bench.here_->prepare(*bench.sender_, src.data(), kTimeout));
  if (method.one_sided()) {
    bench.receiver_ = LACUNA_TRY(method::make(method, method::Role::receiver, *bench.there_, transfer, {&bench.regions_->dst}));
    bench.target_ = LACUNA_TRY(bench.there_->prepare(*bench.receiver_, dst.data(), kTimeout));
  }
  bench.plan_ns_ = static_cast<double>(cpu_ns() - began);
  return bench;
}

Result<double> PostingBench::post() {
  const std::int64_t began = cpu_ns();
  LACUNA_TRY(sender_->start(regions_->src.bytes().data(), target_));
  LACUNA_TRY(here_->run(*sender_, kTimeout));
  return static_cast<double>(cpu_ns() - began - sender_->counters().copy_ns);
}

Result<void> PostingBench::land() {
  // It counts transfers from its start on, and its flag has been raised already.
  LACUNA_TRY(receiver_->start(regions_->dst.bytes().data(), {}));
  return there_->run(*receiver_, kTimeout);
}

Posting measure_posting(const method::Method& method, const std::function<Result<method::Transfer>()>& make_transfer,
                        std::span<std::byte> src, std::span<std::byte> dst, int times) {
  Posting found;
  std::vector<double> layouts;
  std::vector<double> plans;
  std::vector<double> posts;
  const auto once = [&]() -> Result<void> {
    const std::int64_t began = cpu_ns();
    const method::Transfer transfer = LACUNA_TRY(make_transfer());
    layouts.push_back(static_cast<double>(cpu_ns() - began));
    PostingBench bench = LACUNA_TRY(PostingBench::create(method, transfer, src, dst));
    plans.push_back(bench.plan_ns());
    posts.push_back(LACUNA_TRY(bench.post()));
    found.counts = bench.counts();
    return {};
  };
  for (int i = 0; i < times; ++i) {
    if (const Result<void> done = once(); !done) return {.refusal = done.error().text()};
  }
  found.layout_ns = median(layouts);
  found.plan_ns = median(plans);
  found.post_ns = median(posts);
  return found;
}

}  // namespace lacuna::handover
