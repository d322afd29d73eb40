// Layout: the value and its properties.
#include "lacuna/layout/layout.hpp"

#include "lacuna/layout/canonical.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lacuna::layout {

Item Access::item(const Layout& layout) {
  const Layout::State& s = state(layout);
  if (!s.root) return {};
  return {s.at, s.root->size, s.root->kind == NodeKind::run ? nullptr : s.root};
}

Result<Layout> Access::make(const Item* item, std::int64_t lower, std::int64_t upper, bool marked, bool kept) {
  if (lower < -kMaxBytes || upper > kMaxBytes || lower > kMaxBytes || upper < -kMaxBytes || upper - lower > kMaxBytes ||
      lower - upper > kMaxBytes) {
    return base::fail(base::Code::overflow,
                      fmt::format("the layout's bounds are {} and {}: one of them or its extent is beyond 2^60 bytes", lower, upper));
  }
  auto state = std::make_shared<Layout::State>();
  state->lower = lower;
  state->upper = upper;
  state->marked = marked;
  state->kept = kept;
  if (item != nullptr) {
    state->root = node_of(*item);
    state->at = item->at;
    const std::int64_t placed[] = {item->at, static_cast<std::int64_t>(state->root->digest.low),
                                   static_cast<std::int64_t>(state->root->digest.high)};
    const XXH128_hash_t hash = XXH3_128bits(placed, sizeof placed);
    state->digest = {hash.low64, hash.high64};
  }
  return Layout(std::move(state));
}

Layout::Layout() {
  static const std::shared_ptr<const State> empty = std::make_shared<const State>();
  state_ = empty;
}

std::int64_t Layout::size() const { return state_->root ? state_->root->size : 0; }
std::int64_t Layout::run_count() const { return state_->root ? state_->root->runs : 0; }
std::int64_t Layout::lower_bound() const { return state_->lower; }
std::int64_t Layout::extent() const { return state_->upper - state_->lower; }
std::int64_t Layout::true_lower_bound() const { return state_->root ? state_->at + state_->root->low : 0; }
std::int64_t Layout::true_extent() const { return state_->root ? state_->root->high - state_->root->low : 0; }
Digest Layout::digest() const { return state_->digest; }
const Node* Layout::form() const { return state_->root.get(); }
std::int64_t Layout::form_offset() const { return state_->at; }
const Companion* Layout::companion() const { return state_->companion.load(std::memory_order_acquire); }

const Companion* Layout::keep(std::unique_ptr<const Companion> made) const {
  const Companion* kept = nullptr;
  if (!state_->companion.compare_exchange_strong(kept, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) return kept;
  return made.release();
}

int Layout::depth() const { return state_->root ? state_->root->depth : 0; }

}  // namespace lacuna::layout
