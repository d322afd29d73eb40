// What programs learned of methods, in a file beside the profile (learned_file.hpp).
#include <fmt/format.h>

#include "lacuna/guide/learned_file.hpp"

namespace lacuna::guide {

using namespace fields;

namespace {

Result<std::optional<Learned>> learned_in(const Json& json, const std::string& where) {
  Learned made;
  made.pair = LACUNA_TRY(pair_in(json, where));
  made.cold = json.value("cold", false);
  made.message_us = LACUNA_TRY(number_in(json, "message_us", kMostMessage, where));
  const Json& ways = *LACUNA_TRY(member(json, "ways", Json::value_t::array, "a list", where));
  if (ways.size() != 2) return base::fail(base::Code::invalid_argument, fmt::format("{}: {} ways, not 2", where, ways.size()));
  const std::optional<Way> first = LACUNA_TRY(way_in(ways[0], where));
  const std::optional<Way> second = LACUNA_TRY(way_in(ways[1], where));
  const LearnedRatio ratio = LACUNA_TRY(ratio_in(json, where));
  if (!first || !second) return std::nullopt;
  made.first = *first;
  made.second = *second;
  made.log_ratio = ratio.log_ratio;
  made.samples = ratio.samples;
  return made;
}

Json json_of(const Learned& one) {
  return {{"pair", numbers_of(one.pair)}, {"cold", one.cold},
          {"message_us", one.message_us}, {"ways", {way_text(one.first), way_text(one.second)}},
          {"log_ratio", one.log_ratio},   {"samples", one.samples}};
}

}  // namespace

Result<std::vector<Learned>> read_learned(const std::string& file) {
  const std::vector<Json> entries = LACUNA_TRY(read_entries(file));
  return parse_learned<Learned>(entries, file, learned_in);
}

Result<void> merge_learned(const std::string& file, std::span<const Learned> learned) {
  return merge_into(file, learned, learned_in, json_of);
}

}  // namespace lacuna::guide
