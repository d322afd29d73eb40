// pack and unpack: the layout's plan, run.
#include "lacuna/copy/copy.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {

namespace {

// Null: there is no memory for it.
const CopyPlan* plan_of(const Layout& layout) noexcept {
  try {
    return &CopyPlan::of(layout);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The runs of bytes [from, to) of a node's packed stream in order, without any memory: for where a plan cannot be made.
template <class Visit>
void each_run(const layout::Node& node, std::int64_t at, std::int64_t from, std::int64_t to, const Visit& visit) {
  if (node.kind == layout::NodeKind::run) return visit(at + from, to - from);
  const bool uneven = !node.starts.empty();  // blocks, and sequences
  const std::int64_t size = uneven ? 0 : node.children[0]->size;
  std::int64_t i = uneven ? std::ranges::upper_bound(node.starts, from) - node.starts.begin() - 1 : from / size;
  for (; i < node.entries(); ++i) {
    const auto entry = static_cast<std::size_t>(i);
    const std::int64_t begin = uneven ? node.starts[entry] : i * size, end = uneven ? node.starts[entry + 1] : begin + size;
    if (begin >= to) return;
    const std::int64_t first = std::max(from, begin) - begin, last = std::min(to, end) - begin;
    if (node.kind == layout::NodeKind::blocks) {
      visit(at + node.offset(i) + first, last - first);
    } else {
      each_run(*node.child(i), at + node.offset(i), first, last, visit);
    }
  }
}

}  // namespace

void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out, Caching caching) {
  if (length <= 0) return;
  if (const CopyPlan* const plan = plan_of(layout); plan != nullptr) return plan->pack(base, position, length, out, caching);
  each_run(*layout.form(), layout.form_offset(), position, position + length, [&](std::int64_t at, std::int64_t bytes) {
    std::memcpy(out, base + at, static_cast<std::size_t>(bytes));
    out += bytes;
  });
}

void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in, Caching caching) {
  if (length <= 0) return;
  if (const CopyPlan* const plan = plan_of(layout); plan != nullptr) return plan->unpack(base, position, length, in, caching);
  each_run(*layout.form(), layout.form_offset(), position, position + length, [&](std::int64_t at, std::int64_t bytes) {
    std::memcpy(base + at, in, static_cast<std::size_t>(bytes));
    in += bytes;
  });
}

void block(std::byte* to, const std::byte* from, std::int64_t bytes) { copy_block(to, from, bytes, false); }

void prepare(const Layout& layout) {
  if (layout.size() > 0) (void)CopyPlan::of(layout);
}

}  // namespace lacuna::copy
