#include "tools/bench/job/buffer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lacuna/copy/copy.hpp"

namespace lacuna::bench {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::size_t kAlignment = 64;  // DDTBench's arrays lie so within their allocation
using Page = std::array<std::uint64_t, kPage / 8>;

Page page_of(std::int64_t number, std::uint64_t seed) {
  Page page;
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(number);
  for (std::uint64_t& word : page) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    word = state ^ (state >> 29);
  }
  return page;
}

std::vector<std::int64_t> pages_of(const layout::Layout& layout, std::int64_t base) {
  std::vector<std::int64_t> pages;
  layout::Cursor cursor(layout);
  for (layout::Run run = cursor.next_run(INT64_MAX); run.length > 0; run = cursor.next_run(INT64_MAX)) {
    const std::int64_t last = (base + run.offset + run.length - 1) / kPage;
    for (std::int64_t page = (base + run.offset) / kPage; page <= last; ++page)
      if (pages.empty() || pages.back() != page) pages.push_back(page);
  }
  std::ranges::sort(pages);
  pages.erase(std::ranges::unique(pages).begin(), pages.end());
  return pages;
}

}  // namespace

void Buffer::Free::operator()(std::byte* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)

Buffer::Buffer(const Side& side) : layout_(side.layout), base_(side.base), pages_(pages_of(side.layout, side.base)) {
  const auto bytes = static_cast<std::size_t>((side.span / kPage + 1) * kPage);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): as programs do
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
  if (memory_ == nullptr) throw std::bad_alloc();
}

void Buffer::fill(std::uint64_t seed) {
  seed_ = seed;
  for (const std::int64_t number : pages_) {
    const Page page = page_of(number, seed);
    std::memcpy(memory_.get() + number * kPage, page.data(), kPage);
  }
  pattern_ = data();
}

std::vector<std::byte> Buffer::data() const {
  std::vector<std::byte> packed(static_cast<std::size_t>(layout_.size()));
  copy::reference::pack(layout_, base(), 0, layout_.size(), packed.data());
  return packed;
}

void Buffer::clear() { copy::reference::unpack(layout_, base(), 0, layout_.size(), pattern_.data()); }

// With the pattern's own bytes back under the layout, a page differs from the pattern only where something wrote into a
// gap.
bool Buffer::holds(const std::vector<std::byte>& data) {
  const bool arrived = this->data() == data;
  clear();
  for (const std::int64_t number : pages_) {
    const Page page = page_of(number, seed_);
    if (std::memcmp(memory_.get() + number * kPage, page.data(), kPage) == 0) continue;
    fill(seed_);
    return false;
  }
  return arrived;
}

}  // namespace lacuna::bench
