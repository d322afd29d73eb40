#include "tools/handover/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace lacuna::handover {
namespace {

// Eight bytes of noise (splitmix64's mixer): no two places of a cache hold the same but by a chance of 2^-64.
std::uint64_t noise(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15U ^ seed * 0xd1342543de82ef95U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

constexpr std::uint64_t kGaps = 1;

void write_noise(std::uint64_t seed, std::byte* out, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = noise(seed, static_cast<std::uint64_t>(at));
    std::memcpy(out + at, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - at)));
  }
}

// Calls use(address, seed of the vector, layer, kv, token, head) for each vector. The seed is a function of what it is,
// not of where it lies.
void each_vector(const Cache& cache, std::int64_t first_head, const auto& use) {
  const Contents& what = cache.what;
  for (std::int64_t layer = 0; layer < what.layers; ++layer) {
    for (std::int64_t kv = 0; kv < what.kv; ++kv) {
      for (std::int64_t token = 0; token < what.tokens; ++token) {
        for (std::int64_t head = 0; head < what.heads; ++head) {
          const std::int64_t number = ((layer * 2 + kv) << 40) + (token << 12) + first_head + head;
          use(cache.address(layer, kv, token, head), static_cast<std::uint64_t>(number) + kGaps + 1, layer, kv, token, head);
        }
      }
    }
  }
}

}  // namespace

Result<Layout> Cache::layout() const {
  const std::int64_t full = what.tokens / page_tokens;
  const std::int64_t rest = what.tokens % page_tokens;
  const Layout vector = LACUNA_TRY(Layout::bytes(what.head_bytes));
  const Layout token = LACUNA_TRY(Layout::hvector(what.heads, 1, strides.head, vector));
  const Layout page = LACUNA_TRY(Layout::hvector(page_tokens, 1, strides.token, token));
  // The page table as it is: an index list in units of a page.
  const Layout one = LACUNA_TRY(Layout::resized(page, 0, strides.page));
  Layout sequence = LACUNA_TRY(Layout::indexed_block(1, std::span(pages).first(static_cast<std::size_t>(full)), one));
  if (rest > 0) {
    const Layout members[] = {std::move(sequence), LACUNA_TRY(Layout::hvector(rest, 1, strides.token, token))};
    const std::int64_t places[] = {0, pages.back() * strides.page};
    const std::int64_t once[] = {1, 1};
    sequence = LACUNA_TRY(Layout::structure(once, places, members));
  }
  const Layout layer = LACUNA_TRY(Layout::hvector(what.kv, 1, strides.kv, sequence));
  const Layout all = LACUNA_TRY(Layout::hvector(what.layers, 1, strides.layer, layer));
  const std::int64_t place[] = {first};
  return Layout::hindexed_block(1, place, all);
}

std::vector<std::int64_t> page_table(std::int64_t count, std::int64_t spare, std::uint64_t seed) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count * std::max<std::int64_t>(1, spare)));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::mt19937_64 random(seed);
  // The same everywhere
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

Cache paged_cache(const Contents& what, std::int64_t page_tokens, Order order, Kv kv, std::int64_t spare, std::uint64_t seed) {
  Cache cache{.what = what, .page_tokens = page_tokens};
  const std::int64_t count = (what.tokens + page_tokens - 1) / page_tokens;
  cache.pages = page_table(count, spare, seed);
  const std::int64_t token_bytes = what.heads * what.head_bytes;
  const std::int64_t in_token = kv == Kv::tokens ? what.kv : 1;
  const std::int64_t in_page = kv == Kv::pages ? what.kv : 1;
  const std::int64_t in_pools = kv == Kv::pools ? what.kv : 1;
  Strides& strides = cache.strides;
  strides.token = order == Order::tokens_first ? token_bytes * in_token : what.head_bytes * in_token;
  strides.head = order == Order::tokens_first ? what.head_bytes : page_tokens * what.head_bytes * in_token;
  strides.page = page_tokens * token_bytes * in_token * in_page;
  const std::int64_t pool = count * std::max<std::int64_t>(1, spare) * strides.page;
  strides.layer = pool * in_pools;
  strides.kv = kv == Kv::pools ? pool : page_tokens * token_bytes;
  if (kv == Kv::tokens) strides.kv = order == Order::tokens_first ? token_bytes : what.head_bytes;
  cache.memory_bytes = what.layers * strides.layer;
  return cache;
}

Cache heads_of(Cache cache, std::int64_t from, std::int64_t heads) {
  cache.first += from * cache.strides.head;
  cache.what.heads = heads;
  return cache;
}

void fill(const Cache& cache, std::span<std::byte> memory, std::int64_t first_head) {
  each_vector(cache, first_head,
              [&](std::int64_t at, std::uint64_t seed, auto...) { write_noise(seed, memory.data() + at, cache.what.head_bytes); });
}

void fill_gaps(std::span<std::byte> memory) { write_noise(kGaps, memory.data(), std::ssize(memory)); }

std::string check(std::span<const Placed> caches, std::span<const std::byte> memory) {
  std::vector<std::byte> expected(memory.size());
  fill_gaps(expected);
  for (const Placed& placed : caches) fill(*placed.cache, expected, placed.first_head);
  if (std::ranges::equal(memory, expected)) return {};
  const std::int64_t wrong = std::ranges::mismatch(memory, expected).in1 - memory.begin();
  std::string what = "a gap, which nobody may touch";
  for (const Placed& placed : caches) {
    each_vector(*placed.cache, placed.first_head,
                [&](std::int64_t at, std::uint64_t, std::int64_t layer, std::int64_t kv, std::int64_t token, std::int64_t head) {
                  if (wrong < at || wrong >= at + placed.cache->what.head_bytes) return;
                  what = fmt::format("byte {} of {} of layer {}, token {}, head {}", wrong - at, kv == 0 ? "K" : "V", layer, token,
                                     placed.first_head + head);
                });
  }
  const auto at = static_cast<std::size_t>(wrong);
  return fmt::format("byte {} of the memory is {:#04x} and should be {:#04x}: {}", wrong, static_cast<int>(memory[at]),
                     static_cast<int>(expected[at]), what);
}

}  // namespace lacuna::handover
