// What programs learned of the ways of an MPI, in a file beside the MPI's profile (learned_file.hpp).
// docs/reference/files.md has the format.
#include <fmt/format.h>

#include "lacuna/guide/learned_file.hpp"
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide {

using namespace fields;

namespace {

// Nothing for what another version knows.
Result<std::optional<MpiWay>> way_of_entry(const Json& json, const std::string& where) {
  if (!json.is_string()) return base::fail(base::Code::invalid_argument, fmt::format("{}: {} is no way", where, json.dump()));
  return mpi_way_from_name(json.get<std::string>());
}

Result<std::int64_t> bytes_of_entry(const Json& json, const char* name, const std::string& where) {
  constexpr double most = 1e15;
  const auto bytes = static_cast<std::int64_t>(LACUNA_TRY(number_in(json, name, most, where)));
  if (bytes < 1) return base::fail(base::Code::invalid_argument, fmt::format("{}: {} is {}, not 1 at least", where, name, bytes));
  return bytes;
}

Result<std::optional<MpiLearned>> mpi_learned_in(const Json& json, const std::string& where) {
  MpiLearned made;
  made.version = LACUNA_TRY(text(json, "library_version", where));
  const std::optional<Distance> distance = distance_from_name(json.value("distance", std::string(distance_name(Distance::near))));
  const std::optional<MpiUse> use = mpi_use_from_name(LACUNA_TRY(text(json, "use", where)));
  made.piece.bytes = LACUNA_TRY(bytes_of_entry(json, "bytes", where));
  made.piece.run = LACUNA_TRY(bytes_of_entry(json, "run", where));
  made.piece.listed = json.value("listed", false);
  const Json& ways = *LACUNA_TRY(member(json, "ways", Json::value_t::array, "a list", where));
  if (ways.size() != 2) return base::fail(base::Code::invalid_argument, fmt::format("{}: {} ways, not 2", where, ways.size()));
  const std::optional<MpiWay> first = LACUNA_TRY(way_of_entry(ways[0], where));
  const std::optional<MpiWay> second = LACUNA_TRY(way_of_entry(ways[1], where));
  const LearnedRatio ratio = LACUNA_TRY(ratio_in(json, where));
  if (!distance || !use || !first || !second || !mpi_way_serves(*first, *use) || !mpi_way_serves(*second, *use)) return std::nullopt;
  made.distance = *distance;
  made.use = *use;
  made.first = *first;
  made.second = *second;
  made.log_ratio = ratio.log_ratio;
  made.samples = ratio.samples;
  return made;
}

Json json_of_learned(const MpiLearned& one) {
  return {{"library_version", one.version},
          {"distance", distance_name(one.distance)},
          {"use", mpi_use_name(one.use)},
          {"bytes", one.piece.bytes},
          {"run", one.piece.run},
          {"listed", one.piece.listed},
          {"ways", {mpi_way_name(one.first), mpi_way_name(one.second)}},
          {"log_ratio", one.log_ratio},
          {"samples", one.samples}};
}

}  // namespace

Result<std::vector<MpiLearned>> read_mpi_learned(const std::string& file) {
  const std::vector<Json> entries = LACUNA_TRY(read_entries(file));
  return parse_learned<MpiLearned>(entries, file, mpi_learned_in);
}

Result<void> merge_mpi_learned(const std::string& file, std::span<const MpiLearned> learned) {
  return merge_into(file, learned, mpi_learned_in, json_of_learned);
}

}  // namespace lacuna::guide
