#include "tools/worker/limits_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lacuna::measure {
namespace {

// Of nic::Mover.
constexpr std::array<std::string_view, 3> kMovers{"initiator", "both", "device"};

}  // namespace

Json describe_nic(std::string_view name, const nic::Limits& limits) {
  Json paths = Json::array();
  for (const nic::PathInfo& path : limits.paths) {
    paths.push_back({{"name", path_name(path.path)},
                     {"available", path.available},
                     {"passive_target", path.passive_target},
                     {"shared_only", path.shared_only},
                     {"mover", kMovers.at(static_cast<std::size_t>(path.mover))},
                     {"unit_bytes", path.unit_bytes},
                     {"note", path.note}});
  }
  return {{"name", name},
          {"max_sge", limits.max_sge},
          {"max_sge_rd", limits.max_sge_rd},
          {"max_inline", limits.max_inline},
          {"indirect",
           {{"keys", limits.indirect.keys},
            {"entries", limits.indirect.entries},
            {"inline_entries", limits.indirect.inline_entries},
            {"strided_entries", limits.indirect.strided_entries},
            {"stride", limits.indirect.stride},
            {"note", limits.indirect.note}}},
          {"max_send_wr", limits.max_send_wr},
          {"max_recv_wr", limits.max_recv_wr},
          {"max_message_bytes", limits.max_message_bytes},
          {"emulated", limits.emulated},
          {"paths", paths}};
}

Result<nic::Limits> limits_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const Json& keys = json.at("indirect");
    nic::Limits limits{.max_sge = json.at("max_sge"),
                       .max_sge_rd = json.at("max_sge_rd"),
                       .max_inline = json.at("max_inline"),
                       .max_send_wr = json.at("max_send_wr"),
                       .max_recv_wr = json.at("max_recv_wr"),
                       .max_cqe = 0,
                       .max_message_bytes = json.at("max_message_bytes"),
                       .remote_segments = 1,
                       .shared_clock = true,
                       .emulated = json.value("emulated", false),
                       .indirect = {keys.at("keys"), keys.at("entries"), keys.at("inline_entries"), keys.at("strided_entries"),
                                    keys.at("stride"), keys.value("note", "")},
                       .paths = {}};
    if (limits.max_sge < 1 || limits.max_sge_rd < 1 || limits.max_send_wr < 1 || limits.max_recv_wr < 1 || limits.max_message_bytes < 1 ||
        limits.indirect.keys < 0 || limits.indirect.entries < 0)
      return base::fail(base::Code::invalid_argument, "limits below 1 allow nothing to be sent");
    for (const Json& path : json.at("paths")) {
      const std::string name = path.at("name");
      const auto which = nic::path_from_name(name);
      if (!which) return base::fail(base::Code::invalid_argument, fmt::format("no path \"{}\"", name));
      const std::string mover = path.at("mover");
      const auto found = std::ranges::find(kMovers, mover);
      if (found == kMovers.end()) return base::fail(base::Code::invalid_argument, fmt::format("no mover \"{}\"", mover));
      limits.paths.push_back({*which, path.at("available"), path.at("passive_target"), path.at("shared_only"),
                              static_cast<nic::Mover>(found - kMovers.begin()), path.at("unit_bytes"), path.at("note")});
    }
    return limits;
  } catch (const Json::exception& error) {
    return base::fail(base::Code::invalid_argument, error.what());
  }
}

}  // namespace lacuna::measure
