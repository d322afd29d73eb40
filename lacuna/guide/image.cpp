#include "lacuna/guide/image.hpp"

#include <fmt/format.h>

namespace lacuna::guide {

std::vector<std::byte> source_image(std::uint64_t seed, std::int64_t span) {
  std::vector<std::byte> image(static_cast<std::size_t>(span));
  for (std::int64_t i = 0; i < span; ++i) image[static_cast<std::size_t>(i)] = source_byte(seed, i);
  return image;
}

std::vector<std::byte> empty_image(std::int64_t span) {
  std::vector<std::byte> image(static_cast<std::size_t>(span + 2 * kGuard));
  for (std::int64_t i = 0; i < std::ssize(image); ++i) image[static_cast<std::size_t>(i)] = gap_byte(i);
  return image;
}

std::vector<std::byte> expected_image(const Case& what, std::uint64_t seed) {
  std::vector<std::byte> image = empty_image(what.receive_span);
  layout::Cursor from(what.send);
  layout::Cursor to(what.receive);
  layout::Run source{};
  layout::Run target{};
  for (std::int64_t moved = 0; moved < what.send.size(); ++moved) {
    if (source.length == 0) source = from.next_run(layout::kMaxBytes);
    if (target.length == 0) target = to.next_run(layout::kMaxBytes);
    image[static_cast<std::size_t>(kGuard + target.offset)] = source_byte(seed, source.offset);
    source = {source.offset + 1, source.length - 1};
    target = {target.offset + 1, target.length - 1};
  }
  return image;
}

std::string difference(const std::byte* memory, const std::vector<std::byte>& expected) {
  if (std::memcmp(memory, expected.data(), expected.size()) == 0) return {};
  std::size_t at = 0;
  while (memory[at] == expected[at]) ++at;
  return fmt::format("byte {} of the destination is {:#04x}, expected {:#04x}", static_cast<std::int64_t>(at) - kGuard,
                     std::to_integer<int>(memory[at]), std::to_integer<int>(expected[at]));
}

}  // namespace lacuna::guide
