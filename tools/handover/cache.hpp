// A KV cache as a server keeps it: for each layer, for K and V, for each token and each head a vector of `head_bytes`.
// Where one lies is a table of pages and five strides, which is enough for every order that servers use:
//
//   NHD: pages of tokens, a token's heads side by side: token_stride = heads * head_bytes, head_stride = head_bytes
//   HND: pages of heads, a head's tokens together: token_stride = head_bytes, head_stride = page_tokens * head_bytes
//   K and V apart: kv_stride is a pool's size; K and V of a page behind one another: half a page; of a token: half a
//   token
//   latent attention (MLA): one head, no V, rows of head_bytes
//
// address() is the reference that everything is checked against: it knows nothing of layouts. layout() says the same to
// Lacuna.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::handover {

using base::Result;
using layout::Layout;

/// What is in the cache, on both sides.
struct Contents {
  std::int64_t layers = 1;
  std::int64_t kv = 2;  ///< 1: no V
  std::int64_t tokens = 0;
  std::int64_t heads = 1;  ///< of those that are moved
  std::int64_t head_bytes = 0;

  [[nodiscard]] std::int64_t bytes() const { return layers * kv * tokens * heads * head_bytes; }
};

struct Strides {
  std::int64_t layer = 0, kv = 0, page = 0, token = 0, head = 0;
};

/// Where it is, on one side: bytes from the beginning of the memory.
struct Cache {
  Contents what;
  std::int64_t page_tokens = 1;
  Strides strides;
  /// The page table: tokens [i * page_tokens, (i + 1) * page_tokens) are in page pages[i]
  std::vector<std::int64_t> pages;
  std::int64_t first = 0;         ///< where the first head that is moved begins
  std::int64_t memory_bytes = 0;  ///< all of it, with pages that are somebody else's

  [[nodiscard]] std::int64_t address(std::int64_t layer, std::int64_t kv, std::int64_t token, std::int64_t head) const {
    return first + layer * strides.layer + kv * strides.kv + pages[static_cast<std::size_t>(token / page_tokens)] * strides.page +
           token % page_tokens * strides.token + head * strides.head;
  }
  /// In the order layer, K or V, token, head: what both sides agree on. Errors: those of the constructors.
  [[nodiscard]] Result<Layout> layout() const;
};

/// How a side keeps a page.
enum class Order { tokens_first, heads_first };  ///< NHD, HND
/// K and V: in two pools, behind one another in a page, or in each token
enum class Kv { pools, pages, tokens };

/// A cache in which all heads are moved. `spare`: so many pages for each that is used, at least 1; which are used, and
/// in which order, follows from `seed`.
Cache paged_cache(const Contents& what, std::int64_t page_tokens, Order order, Kv kv, std::int64_t spare, std::uint64_t seed);
/// Heads [from, from + heads) of a cache alone.
Cache heads_of(Cache cache, std::int64_t from, std::int64_t heads);

/// `count` page numbers below `count * spare`, each once, in an order that follows from `seed`.
std::vector<std::int64_t> page_table(std::int64_t count, std::int64_t spare, std::uint64_t seed);

// --- what is in it, and whether it arrived ---------------------------------------------------------------------------

/// Heads of tensor parallel ranks are numbered through: `first_head` is the number of the first one that is moved.
void fill(const Cache& cache, std::span<std::byte> memory, std::int64_t first_head);
/// What no transfer may touch.
void fill_gaps(std::span<std::byte> memory);
/// Nothing if the memory holds every vector of all `caches` (each with its first head) where its address() says, and
/// elsewhere what fill_gaps() wrote; else a sentence with the first wrong byte, and what should be there.
struct Placed {
  const Cache* cache;
  std::int64_t first_head;
};
[[nodiscard]] std::string check(std::span<const Placed> caches, std::span<const std::byte> memory);

}  // namespace lacuna::handover
