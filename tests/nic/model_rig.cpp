#include "tests/nic/model_rig.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace lacuna::test {

std::vector<std::string> parameters_of(std::string_view suffix) {
  const auto profile = nlohmann::json::parse(std::ifstream(kProfile));
  std::vector<std::string> names;
  for (const auto& [name, value] : profile["parameters"].items()) {
    if (name.ends_with(suffix)) names.push_back(name);
  }
  return names;
}

nic::WorldOptions free_world(const Parameters& on, int ranks) {
  Parameters all{{"nic.mtu", 1024},
                 {"nic.header_bytes", 0},
                 {"nic.translations", 1 << 14},
                 {"register.page_bytes", 4096},
                 {"register.key_free_entries", 0},
                 {"indirect.cache_variant", 0},
                 {"copy.far_gap_bytes", 1e9},
                 {"copy.ramp_bytes", 1024},
                 {"limits.max_inline", 256},
                 {"limits.indirect_inline_entries", 10}};
  for (const std::string& name : parameters_of("_ns")) all[name] = 0;
  for (const std::string& name : parameters_of("_gb_s")) all[name] = 1e6;
  for (const auto& [name, value] : on) all[name] = value;
  return {.profile = kProfile, .overrides = nlohmann::json(all).dump(), .ranks = ranks};
}

}  // namespace lacuna::test
