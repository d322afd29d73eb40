#include "lacuna/nic/model/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace lacuna::nic::model {
namespace {

using Json = nlohmann::json;
using Values = std::map<std::string, double, std::less<>>;

constexpr int kMostBases = 8;
constexpr double kMostNs = 1e9;  // a second for one stage

base::Result<Json> read(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return base::fail(base::Code::io, fmt::format("cannot read the profile {}", file.string()));
  Json json = Json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains("parameters") || !json["parameters"].is_object())
    return base::fail(base::Code::invalid_argument, fmt::format("{} is no profile: a JSON object with \"parameters\"", file.string()));
  return json;
}

// The values of a file, on top of those of the file beside it that it names as its base.
base::Result<Values> values_of(const std::filesystem::path& file, int depth) {
  if (depth > kMostBases) return base::fail(base::Code::invalid_argument, fmt::format("{}: its bases have no end", file.string()));
  const Json json = LACUNA_TRY(read(file));
  Values values;
  if (const auto base = json.find("base"); base != json.end()) {
    if (!base->is_string()) return base::fail(base::Code::invalid_argument, fmt::format("{}: \"base\" is no name", file.string()));
    values = LACUNA_TRY(values_of(file.parent_path() / (base->get<std::string>() + ".json"), depth + 1));
  }
  for (const auto& [name, entry] : json["parameters"].items()) {
    const auto value = entry.is_object() ? entry.find("value") : entry.end();
    if (!entry.is_object() || value == entry.end() || !value->is_number())
      return base::fail(base::Code::invalid_argument, fmt::format("{}: {} has no \"value\" that is a number", file.string(), name));
    values[name] = value->get<double>();
  }
  return values;
}

// Takes the values by name; what is missing, unknown or out of its range is remembered, and told once.
class Reader {
 public:
  Reader(Values values, std::string where) : values_(std::move(values)), where_(std::move(where)) {}

  std::int64_t whole(std::string_view name, double least, double most) { return std::llround(number(name, least, most)); }
  void time(Time& to, std::string_view name) { to = std::llround(number(name, 0, kMostNs) * 1000); }
  void rate(Rate& to, std::string_view name) { to.fs_per_byte = std::llround(1e6 / number(name, 1e-2, 1e6)); }
  void misses(MissRange& to, std::int64_t cache, std::string_view none, std::string_view all) {
    const auto share = [&](std::string_view name) { return std::llround(number(name, 0, 1e4) / 100 * static_cast<double>(cache)); };
    to.none = share(none);
    to.all = std::max<std::int64_t>(to.none + 1, share(all));
  }
  void count(std::int64_t& to, std::string_view name, double most = 1e15) { to = whole(name, 0, most); }
  void count(int& to, std::string_view name, int least, int most) { to = static_cast<int>(whole(name, least, most)); }

  [[nodiscard]] Result<void> end() const {
    if (!wrong_.empty()) return base::fail(base::Code::invalid_argument, where_ + ": " + wrong_);
    for (const auto& [name, value] : values_) {
      if (!taken_.contains(name))
        return base::fail(base::Code::invalid_argument, fmt::format("{}: no parameter is named {}", where_, name));
    }
    return {};
  }

 private:
  double number(std::string_view name, double least, double most) {
    const auto found = values_.find(name);
    taken_.emplace(name, 0);
    if (found == values_.end()) return note(fmt::format("{} is missing", name)), least;
    if (found->second >= least && found->second <= most) return found->second;
    return note(fmt::format("{} is {}; it may be {} to {}", name, found->second, least, most)), least;
  }
  void note(std::string text) {
    if (wrong_.empty()) wrong_ = std::move(text);
  }

  Values values_;
  Values taken_;
  std::string where_;
  std::string wrong_;
};

void take_cpu(Reader& reader, Profile& p) {
  reader.time(p.cpu.post, "cpu.post_ns");
  reader.time(p.cpu.post_sge, "cpu.post_sge_ns");
  reader.time(p.cpu.post_recv, "cpu.post_recv_ns");
  reader.time(p.cpu.doorbell, "cpu.doorbell_ns");
  reader.time(p.cpu.poll_empty, "cpu.poll_empty_ns");
  reader.time(p.cpu.poll_found, "cpu.poll_found_ns");
  reader.time(p.cpu.bind_entry, "cpu.bind_entry_ns");
  if (p.cpu.poll_empty == 0) p.cpu.poll_empty = 1;  // a poll that took no time would never end
  reader.time(p.copies.call, "copy.call_ns");
  reader.time(p.copies.block, "copy.block_ns");
  reader.rate(p.copies.l2, "copy.l2_gb_s");
  reader.rate(p.copies.llc, "copy.llc_gb_s");
  reader.rate(p.copies.memory, "copy.memory_gb_s");
  reader.rate(p.copies.ramp, "copy.ramp_gb_s");
  reader.count(p.copies.ramp_bytes, "copy.ramp_bytes");
  reader.count(p.copies.l2_bytes, "copy.l2_bytes");
  reader.count(p.copies.llc_bytes, "copy.llc_bytes");
  reader.misses(p.copies.l2_miss, p.copies.l2_bytes, "copy.l2_none_percent", "copy.l2_all_percent");
  reader.misses(p.copies.llc_miss, p.copies.llc_bytes, "copy.llc_none_percent", "copy.llc_all_percent");
  reader.count(p.copies.far_gap, "copy.far_gap_bytes");
  reader.time(p.copies.far_block, "copy.far_block_ns");
  reader.time(p.registration.call, "register.call_ns");
  reader.time(p.registration.page, "register.page_ns");
  reader.time(p.registration.undo, "register.undo_ns");
  reader.time(p.registration.undo_page, "register.undo_page_ns");
  reader.time(p.registration.key, "register.key_ns");
  reader.time(p.registration.key_entry, "register.key_entry_ns");
  reader.count(p.registration.key_free_entries, "register.key_free_entries");
  p.registration.page_bytes = reader.whole("register.page_bytes", 512, 1 << 30);
}

void take_nic(Reader& reader, Profile& p) {
  reader.time(p.nic.doorbell, "nic.doorbell_ns");
  reader.time(p.nic.request, "nic.request_ns");
  reader.time(p.nic.entry, "nic.entry_ns");
  reader.time(p.nic.scatter, "nic.scatter_ns");
  reader.time(p.nic.packet, "nic.packet_ns");
  reader.time(p.nic.dma_read, "nic.dma_read_ns");
  reader.time(p.nic.dma_write, "nic.dma_write_ns");
  reader.rate(p.nic.pcie, "nic.pcie_gb_s");
  reader.rate(p.nic.wire, "nic.wire_gb_s");
  reader.time(p.nic.flight, "nic.flight_ns");
  p.nic.mtu = reader.whole("nic.mtu", 256, 1 << 20);
  reader.count(p.nic.header, "nic.header_bytes", 4096);
  reader.time(p.nic.receive, "nic.receive_ns");
  reader.time(p.nic.completion, "nic.completion_ns");
  reader.time(p.nic.receive_completion, "nic.receive_completion_ns");
  reader.time(p.nic.not_ready, "nic.not_ready_ns");
  if (p.nic.not_ready == 0) p.nic.not_ready = 1;
  reader.time(p.nic.retry, "nic.retry_ns");
  reader.time(p.nic.bind, "nic.bind_ns");
  reader.time(p.nic.bind_entry, "nic.bind_entry_ns");
  reader.count(p.nic.translations, "nic.translations", 1e8);
  reader.time(p.nic.translation_miss, "nic.translation_miss_ns");
  p.indirect.variant = reader.whole("indirect.cache_variant", 0, 1) == 1 ? IndirectVariant::cache : IndirectVariant::search;
  reader.time(p.indirect.scan, "indirect.scan_ns");
  reader.time(p.indirect.restart, "indirect.restart_ns");
  p.indirect.capacity = reader.whole("indirect.capacity", 1, 1e9);
  reader.time(p.indirect.miss, "indirect.miss_ns");
  reader.time(p.indirect.dependent, "indirect.dependent_ns");
}

void take_limits(Reader& reader, Limits& limits) {
  reader.count(limits.max_sge, "limits.max_sge", 1, 1 << 16);
  reader.count(limits.max_sge_rd, "limits.max_sge_rd", 1, 1 << 16);
  reader.count(limits.max_inline, "limits.max_inline", 0, 1 << 16);
  reader.count(limits.max_send_wr, "limits.max_send_wr", 1, 1 << 20);
  reader.count(limits.max_recv_wr, "limits.max_recv_wr", 1, 1 << 20);
  reader.count(limits.max_cqe, "limits.max_cqe", 1, 1 << 24);
  limits.max_message_bytes = reader.whole("limits.max_message_bytes", 1, 4294967295.0);
  reader.count(limits.indirect.keys, "limits.indirect_keys", 0, 1 << 24);
  reader.count(limits.indirect.entries, "limits.indirect_entries", 0, 1 << 24);
  reader.count(limits.indirect.inline_entries, "limits.indirect_inline_entries", 0, 1 << 16);
  reader.count(limits.indirect.strided_entries, "limits.indirect_strided_entries", 0, 1 << 16);
  limits.indirect.stride = reader.whole("limits.indirect_stride", 0, 4294967295.0);
  if (limits.indirect.keys == 0 || limits.indirect.entries == 0) limits.indirect = {};
  limits.shared_clock = true;
}

}  // namespace

Result<Profile> Profile::load(const std::string& file, const std::string& overrides) {
  Values values = LACUNA_TRY(values_of(file, 0));
  const Json changes = overrides.empty() ? Json::object() : Json::parse(overrides, nullptr, false);
  if (!changes.is_object()) return base::fail(base::Code::invalid_argument, "overrides are a JSON object of numbers");
  for (const auto& [name, value] : changes.items()) {
    if (!value.is_number()) return base::fail(base::Code::invalid_argument, fmt::format("override {} is no number", name));
    values[name] = value.get<double>();
  }
  Reader reader(std::move(values), file);
  Profile profile{};
  take_cpu(reader, profile);
  take_nic(reader, profile);
  take_limits(reader, profile.limits);
  // As a device says it of its port: active_mtu of ibv_query_port.
  profile.limits.paths = {{Path::wire, true, true, false, nic::Mover::device, profile.nic.mtu, "in virtual time"}};
  LACUNA_TRY(reader.end());
  return profile;
}

}  // namespace lacuna::nic::model
