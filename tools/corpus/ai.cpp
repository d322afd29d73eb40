// Sizes and counts: public issue threads of serving and training systems. Where a thread gives a range, a value inside
// it is taken; where pages are assigned by an allocator, a fixed pseudo-random choice from twice as many stands for it.
#include "tools/corpus/ai.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace lacuna::corpus {
namespace {

constexpr std::int64_t kKiB = 1024;

Case whole(Layout send, Layout receive) {
  Case what;
  what.send_span = send.true_lower_bound() + send.true_extent();
  what.receive_span = receive.true_lower_bound() + receive.true_extent();
  what.block_count = std::max(send.run_count(), receive.run_count());
  what.block_bytes = send.size() / std::max<std::int64_t>(1, what.block_count);
  what.send = std::move(send);
  what.receive = std::move(receive);
  return what;
}

// `count` page numbers out of twice as many, in the order in which an allocator gave them out.
Result<Layout> pages(std::int64_t bytes, std::int64_t count, unsigned seed) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(2 * count));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  std::mt19937_64 random(seed);
  // The same everywhere
  for (std::size_t i = numbers.size() - 1; i > 0; --i) std::swap(numbers[i], numbers[random() % (i + 1)]);
  numbers.resize(static_cast<std::size_t>(count));
  return Layout::paged(bytes, numbers);
}

Result<Layout> rows(std::int64_t bytes, std::int64_t count, std::int64_t stride) {
  return Layout::hvector(count, 1, stride, LACUNA_TRY(Layout::bytes(bytes)));
}

// Pages here to pages there.
Result<Case> paged(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(pages(t.block_bytes, blocks, 1)), LACUNA_TRY(pages(t.block_bytes, blocks, 2)));
}

// Blocks in turn in 101 regions, which have some room between them; the receiver keeps its blocks closer.
Result<Case> regions(const AiTransfer& t, std::int64_t blocks) {
  constexpr std::int64_t count = 101;
  const std::int64_t each = (blocks + count - 1) / count;
  const auto side = [&](std::int64_t room) -> Result<Layout> {
    std::vector<std::int64_t> offsets;
    offsets.reserve(static_cast<std::size_t>(blocks));
    for (std::int64_t i = 0; i < blocks; ++i)
      offsets.push_back(i % count * (each * room * t.block_bytes + 64 * kKiB) + i / count * room * t.block_bytes);
    return Layout::blocks(offsets, std::vector<std::int64_t>(offsets.size(), t.block_bytes));
  };
  return whole(LACUNA_TRY(side(2)), LACUNA_TRY(side(1)));
}

// A quarter of the heads of each token: slices with a stride of four at the sender, pages of 16 slices at the receiver.
Result<Case> head_slices(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(rows(t.block_bytes, blocks, 4 * t.block_bytes)), LACUNA_TRY(pages(16 * t.block_bytes, blocks / 16, 3)));
}

// Every eighth row of the cache, to a rank that has pages of 64 rows.
Result<Case> every_eighth(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(rows(t.block_bytes, blocks, 8 * t.block_bytes)), LACUNA_TRY(pages(64 * t.block_bytes, blocks / 64, 4)));
}

// A contiguous block of the manager, to as many layers, far apart.
Result<Case> layers(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(Layout::bytes(blocks * t.block_bytes)), LACUNA_TRY(rows(t.block_bytes, blocks, 64 * t.block_bytes)));
}

// A quarter of each row of a weight matrix, to a shard of its own.
Result<Case> columns(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(rows(t.block_bytes, blocks, 4 * t.block_bytes)), LACUNA_TRY(Layout::bytes(blocks * t.block_bytes)));
}

// As many small pieces as a descriptor list may have, at two different strides.
Result<Case> descriptors(const AiTransfer& t, std::int64_t blocks) {
  return whole(LACUNA_TRY(rows(t.block_bytes, blocks, 2 * t.block_bytes)), LACUNA_TRY(rows(t.block_bytes, blocks, 3 * t.block_bytes)));
}

constexpr std::array kTransfers{
    AiTransfer{"kv_pages_32K", "paged KV cache, prefill to decode, same parallelism", 32 * kKiB, 24'000, 1, &paged},
    AiTransfer{"kv_pages_8K", "paged KV cache, pages of 16 tokens", 8 * kKiB, 30'000, 1, &paged},
    AiTransfer{"kv_128k_tokens", "KV cache of 128 k tokens", 16 * kKiB, 32'000, 1, &paged},
    AiTransfer{"serving_101_regions", "large-model serving: blocks of 45 KB in 101 regions", 45 * kKiB, 100'000, 1, &regions},
    AiTransfer{"tensor_parallel_4to1", "other tensor parallelism at the other end: head slices of each token", 2 * kKiB, 160'000, 16,
               &head_slices},
    AiTransfer{"context_parallel_1to8", "decode-context parallelism: every eighth row of 576 B", 576, 168'000, 64, &every_eighth},
    AiTransfer{"kv_manager_block", "a block of 1.5 MB to its 96 places", 16 * kKiB, 96, 96, &layers},
    AiTransfer{"weight_columns_4K", "weight synchronisation: a quarter of each row of a matrix", 4 * kKiB, 16'384, 1, &columns},
    AiTransfer{"descriptors_256B", "1.4 million descriptors: small pieces, strided at both ends", 256, 1'400'000, 1, &descriptors},
};

}  // namespace

std::span<const AiTransfer> ai_transfers() { return kTransfers; }

std::int64_t blocks_within(const AiTransfer& transfer, std::int64_t most_payload) {
  const std::int64_t units = std::min(transfer.block_count, most_payload / transfer.block_bytes) / transfer.unit;
  return std::max<std::int64_t>(1, units) * transfer.unit;
}

Result<Case> ai_case(const std::string& name, std::int64_t most_payload) {
  for (const AiTransfer& transfer : kTransfers) {
    if (transfer.name != name) continue;
    const std::int64_t blocks = blocks_within(transfer, most_payload);
    Case what = LACUNA_TRY(transfer.make(transfer, blocks));
    what.name = fmt::format("{} {} of {}", name, blocks, transfer.block_count);
    return what;
  }
  std::string names;
  for (const AiTransfer& transfer : kTransfers) names += fmt::format("{}{}", names.empty() ? "" : ", ", transfer.name);
  return base::fail(base::Code::invalid_argument, fmt::format("no transfer \"{}\"; there are: {}", name, names));
}

}  // namespace lacuna::corpus
