// A case from a request.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lacuna/guide/simulate.hpp"

namespace lacuna::guide {
namespace {

using Json = nlohmann::json;

Result<Case> case_of(const Json& layout, const std::string& shape, bool cold) {
  const std::string kind = layout.at("kind");
  if (kind == "grid") {
    const Shape as = LACUNA_TRY(shape_from_name(shape));
    return (cold ? cold_grid_case : grid_case)(layout.at("block_bytes"), layout.at("block_count"), as);
  }
  if (cold) return guide::cold(LACUNA_TRY(case_of(layout, shape, false)));
  if (kind == "ai") return ai_case(layout.at("name"), layout.at("most_payload"));
  if (kind == "ddtbench") return ddtbench_case(layout.at("name"), layout.at("size"));
  if (kind == "stencil") return stencil_case(layout.at("points"), layout.at("point_bytes"));
  if (kind != "blocks")
    return base::fail(base::Code::invalid_argument, fmt::format("no layout \"{}\"; there are: grid, blocks, stencil, ddtbench, ai", kind));
  const std::string remote = layout.value("remote", "same");
  if (remote != "same" && remote != "contiguous")
    return base::fail(base::Code::invalid_argument, fmt::format("no remote \"{}\"; there are: same, contiguous", remote));
  return blocks_case(layout.at("block_bytes"), layout.at("block_count"), layout.at("gap_bytes"), LACUNA_TRY(shape_from_name(shape)),
                     remote == "contiguous");
}

}  // namespace

Result<Case> case_from_json(const std::string& layout, const std::string& shape, bool cold) {
  try {
    return case_of(Json::parse(layout), shape, cold);
  } catch (const Json::exception& error) {  // a missing or mistyped member
    return base::fail(base::Code::invalid_argument, error.what());
  }
}

}  // namespace lacuna::guide
