#include "lacuna/guide/image.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::guide {
namespace {

constexpr std::int64_t kDense = 64 << 20;  // a span up to this is looked at whole

}  // namespace

Windows::Windows(const Layout& layout, std::int64_t span) {
  if (span <= kDense || layout.size() + layout.run_count() * 2 * kGuard >= span) {
    list_.push_back({-kGuard, span + kGuard, 0});
    return;
  }
  std::vector<layout::Run> runs;
  layout::Cursor cursor(layout);
  while (!cursor.done()) runs.push_back(cursor.next_run(layout::kMaxBytes));
  std::ranges::sort(runs);
  for (const layout::Run& run : runs) {
    const std::int64_t from = run.offset - kGuard;
    const std::int64_t to = run.offset + run.length + kGuard;
    if (!list_.empty() && from <= list_.back().to) {
      list_.back().to = std::max(list_.back().to, to);
    } else {
      list_.push_back({from, to, list_.empty() ? 0 : bytes()});
    }
  }
}

std::int64_t Windows::index(std::int64_t offset) const {
  const auto after = std::ranges::upper_bound(list_, offset, {}, &Window::from);
  const Window& window = *std::prev(after);
  return window.at + offset - window.from;
}

Image::Image(Windows windows, const auto& byte_at) : windows_(std::move(windows)), bytes_(static_cast<std::size_t>(windows_.bytes())) {
  for (const Windows::Window& window : windows_.list()) {
    for (std::int64_t offset = window.from; offset < window.to; ++offset)
      bytes_[static_cast<std::size_t>(window.at + offset - window.from)] = byte_at(offset);
  }
}

Image Image::source(const Case& what, std::uint64_t seed) {
  return {Windows(what.send, what.send_span), [seed](std::int64_t offset) { return source_byte(seed, offset); }};
}

Image Image::empty(const Case& what) { return {Windows(what.receive, what.receive_span), gap_byte}; }

Image Image::expected(const Case& what, std::uint64_t seed) {
  Image image = empty(what);
  layout::Cursor from(what.send);
  layout::Cursor to(what.receive);
  layout::Run source{};
  layout::Run target{};
  std::byte* out = nullptr;
  for (std::int64_t moved = 0; moved < what.send.size(); ++moved) {
    if (source.length == 0) source = from.next_run(layout::kMaxBytes);
    if (target.length == 0) {
      target = to.next_run(layout::kMaxBytes);
      out = image.bytes_.data() + image.windows_.index(target.offset);
    }
    *out++ = source_byte(seed, source.offset);
    source = {source.offset + 1, source.length - 1};
    target = {target.offset + 1, target.length - 1};
  }
  return image;
}

void Image::write_to(std::byte* base) const {
  for (const Windows::Window& window : windows_.list())
    std::memcpy(base + window.from, bytes_.data() + window.at, static_cast<std::size_t>(window.to - window.from));
}

std::string Image::difference(const std::byte* base) const {
  for (const Windows::Window& window : windows_.list()) {
    const std::byte* memory = base + window.from;
    const std::byte* expected = bytes_.data() + window.at;
    const auto length = static_cast<std::size_t>(window.to - window.from);
    if (std::memcmp(memory, expected, length) == 0) continue;
    std::size_t at = 0;
    while (at + 1 < length && memory[at] == expected[at]) ++at;
    return fmt::format("byte {} of the destination is {:#04x}, expected {:#04x}", window.from + static_cast<std::int64_t>(at),
                       std::to_integer<int>(memory[at]), std::to_integer<int>(expected[at]));
  }
  return {};
}

}  // namespace lacuna::guide
