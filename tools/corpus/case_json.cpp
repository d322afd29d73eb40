// A case from a request.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/corpus/cases.hpp"

namespace lacuna::corpus {

using Json = nlohmann::json;

Result<Layout> layout_from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return base::fail(base::Code::malformed, "the last byte of a layout has one digit");
  std::vector<std::byte> wire(digits.size() / 2);
  for (std::size_t i = 0; i < wire.size(); ++i) {
    unsigned value = 0;
    const char* first = digits.data() + 2 * i;
    if (const auto [end, error] = std::from_chars(first, first + 2, value, 16); error != std::errc() || end != first + 2)
      return base::fail(base::Code::malformed, fmt::format("a layout has hexadecimal digits, not \"{}\"", digits.substr(2 * i, 2)));
    wire[i] = static_cast<std::byte>(value);
  }
  return layout::decode(wire);
}

namespace {

Result<Case> pair_of(const std::string& name, const std::string& send, const std::string& receive) {
  Case what;
  what.name = name;
  what.send = LACUNA_TRY(layout_from_hex(send));
  what.receive = LACUNA_TRY(layout_from_hex(receive));
  LACUNA_TRY(layout::check_sizes(what.send, what.receive));
  for (const Layout* layout : {&what.send, &what.receive}) {
    if (layout->true_lower_bound() < 0)
      return base::fail(base::Code::invalid_argument,
                        fmt::format("a layout that begins {} bytes before its base", -layout->true_lower_bound()));
  }
  what.send_span = what.send.true_lower_bound() + what.send.true_extent();
  what.receive_span = what.receive.true_lower_bound() + what.receive.true_extent();
  what.block_count = std::max(what.send.run_count(), what.receive.run_count());
  what.block_bytes = what.send.size() / std::max<std::int64_t>(1, what.block_count);
  return what;
}

Result<Case> case_of(const Json& layout, const std::string& shape, bool cold, std::int64_t cache) {
  const std::string kind = layout.at("kind");
  if (kind == "grid") {
    const Shape as = LACUNA_TRY(shape_from_name(shape));
    if (cold) return cold_grid_case_beyond(cache, layout.at("block_bytes"), layout.at("block_count"), as);
    return grid_case(layout.at("block_bytes"), layout.at("block_count"), as);
  }
  if (cold) return cold_beyond(cache, LACUNA_TRY(case_of(layout, shape, false, cache)));
  if (kind == "pair") return pair_of(layout.at("name"), layout.at("send"), layout.at("receive"));
  if (kind == "ai") return ai_case(layout.at("name"), layout.at("most_payload"));
  if (kind == "ddtbench") return ddtbench_case(layout.at("name"), layout.at("size"));
  if (kind == "stencil") return stencil_case(layout.at("points"), layout.at("point_bytes"));
  if (kind != "blocks")
    return base::fail(base::Code::invalid_argument,
                      fmt::format("no layout \"{}\"; there are: grid, blocks, stencil, ddtbench, ai, pair", kind));
  const std::string remote = layout.value("remote", "same");
  if (remote != "same" && remote != "contiguous")
    return base::fail(base::Code::invalid_argument, fmt::format("no remote \"{}\"; there are: same, contiguous", remote));
  return blocks_case(layout.at("block_bytes"), layout.at("block_count"), layout.at("gap_bytes"), LACUNA_TRY(shape_from_name(shape)),
                     remote == "contiguous");
}

}  // namespace

Result<Case> case_from_json(const std::string& layout, const std::string& shape, bool cold, std::optional<std::int64_t> cache) {
  try {
    return case_of(Json::parse(layout), shape, cold, cache.value_or(cache_bytes()));
  } catch (const Json::exception& error) {  // a missing or mistyped member
    return base::fail(base::Code::invalid_argument, error.what());
  }
}

}  // namespace lacuna::corpus
