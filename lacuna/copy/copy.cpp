// pack and unpack: the layout's plan, run.
#include "lacuna/copy/copy.hpp"

#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {

void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out, Caching caching) {
  if (length > 0) Plan::of(layout).pack(base, position, length, out, caching);
}

void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in, Caching caching) {
  if (length > 0) Plan::of(layout).unpack(base, position, length, in, caching);
}

void block(std::byte* to, const std::byte* from, std::int64_t bytes) { copy_block(to, from, bytes, false); }

void prepare(const Layout& layout) {
  if (layout.size() > 0) (void)Plan::of(layout);
}

}  // namespace lacuna::copy
