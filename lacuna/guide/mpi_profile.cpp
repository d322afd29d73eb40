// The times of an MPI's ways: what `lacuna guide --mpi` wrote, or the usual ones. docs/reference/files.md has the
// format.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "lacuna/guide/json_fields.hpp"
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide {

using namespace fields;

namespace {

constexpr const char* kMpiSchema = "lacuna-mpi-ways/4";
constexpr std::int64_t kMostChunk = 1 << 30;  // a host's count is an int

std::unexpected<base::Error> unfit(std::string message) { return base::fail(base::Code::invalid_argument, std::move(message)); }

}  // namespace

// What a profile's members come to.
struct MpiProfile {
  const std::string& file;
  MpiPrices made{};

  base::Result<void> of_form(const Json& ways, std::size_t use, std::size_t form, const std::string& where) {
    for (std::size_t way = 0; way < kMpiWays; ++way) {
      if (!mpi_way_serves(static_cast<MpiWay>(way), static_cast<MpiUse>(use))) continue;
      const std::string name(mpi_way_name(static_cast<MpiWay>(way)));
      const Json& numbers = *LACUNA_TRY(member(ways, name.c_str(), Json::value_t::array, "a list", where));
      made.sheets_.at(use).at(form).at(way) = LACUNA_TRY(sheet_in(numbers, kMpiAxes, fmt::format("{}, {}", where, name)));
    }
    return {};
  }

  base::Result<void> of_uses(const Json& uses) {
    for (std::size_t use = 0; use < kMpiUses; ++use) {
      const std::string name(mpi_use_name(static_cast<MpiUse>(use)));
      const Json& forms = *LACUNA_TRY(member(uses, name.c_str(), Json::value_t::object, "an object", file));
      for (std::size_t form = 0; form < kSheetForms.size(); ++form) {
        if (form > 0 && !forms.contains(kSheetForms.at(form))) continue;
        const std::string where = fmt::format("{}: {}, {}", file, name, kSheetForms.at(form));
        const Json& ways = *LACUNA_TRY(member(forms, kSheetForms.at(form), Json::value_t::object, "an object", where));
        LACUNA_TRY(of_form(ways, use, form, where));
      }
    }
    return {};
  }

  // A number of bytes; null: never.
  static base::Result<std::int64_t> bytes_in(const Json& json, const char* name, const std::string& where) {
    constexpr double kMost = 1LL << 50;
    const auto found = json.find(name);
    if (found == json.end()) return unfit(fmt::format("{} lacks {}", where, name));
    if (found->is_null()) return MpiThresholds::kNever;
    return static_cast<std::int64_t>(LACUNA_TRY(number(*found, name, 1, kMost, where)));
  }

  // Each that was measured.
  base::Result<void> of_thresholds(const Json& all) {
    MpiThresholds& found = made.thresholds_;
    if (all.contains("contiguous")) {
      const Json& of = *LACUNA_TRY(member(all, "contiguous", Json::value_t::object, "an object", file + ": thresholds"));
      found.contiguous = LACUNA_TRY(bytes_in(of, "from", file + ": thresholds, contiguous"));
    }
    if (all.contains("inter_node")) {
      const Json& of = *LACUNA_TRY(member(all, "inter_node", Json::value_t::object, "an object", file + ": thresholds"));
      found.inter_node = LACUNA_TRY(bytes_in(of, "from", file + ": thresholds, inter_node"));
      found.chunk = LACUNA_TRY(bytes_in(of, "chunk", file + ": thresholds, inter_node"));
      if (found.chunk > kMostChunk)
        return unfit(fmt::format("{}: thresholds, inter_node: a chunk of {} bytes; at most {} are taken", file, found.chunk, kMostChunk));
    }
    return {};
  }

  base::Result<void> of(const Json& json, MpiLibrary library) {
    if (!json.is_object()) return unfit(fmt::format("{} is no profile of an MPI", file));
    const std::string schema = LACUNA_TRY(text(json, "schema", file));
    if (schema != kMpiSchema) return unfit(fmt::format("{} is of schema {}, not {}", file, schema, kMpiSchema));
    const std::string of = LACUNA_TRY(text(json, "library", file));
    if (of != mpi_library_name(library)) return unfit(fmt::format("{} is of {}, not of {}", file, of, mpi_library_name(library)));
    LACUNA_TRY(same_axes(json, kMpiAxes, file));
    made.file_ = file;
    made.machine_ = LACUNA_TRY(text(json, "machine", file));
    made.version_ = LACUNA_TRY(text(json, "library_version", file));
    made.thresholds_ = usual_thresholds(library);
    if (json.contains("thresholds"))
      LACUNA_TRY(of_thresholds(*LACUNA_TRY(member(json, "thresholds", Json::value_t::object, "an object", file))));
    return of_uses(*LACUNA_TRY(member(json, "ns", Json::value_t::object, "an object", file)));
  }
};

base::Result<MpiPrices> MpiPrices::read(const std::string& file, MpiLibrary library) {
  MpiProfile profile{.file = file};
  LACUNA_TRY(profile.of(Json::parse(LACUNA_TRY(read_text(file)), nullptr, false), library));
  return std::move(profile.made);
}

std::string MpiPrices::file_of(MpiLibrary library, Distance distance) {
  if (const char* named = std::getenv("LACUNA_MPI_PROFILE"); named != nullptr && *named != '\0') return named;
  return fmt::format("{}/mpi-{}{}.json", profiles_folder(), mpi_library_name(library), distance == Distance::near ? "" : "-distant");
}

std::string MpiPrices::learned_file_of(MpiLibrary library) { return learned_file(file_of(library, Distance::near)); }

MpiPrices MpiPrices::find(MpiLibrary library, Distance distance, std::string_view version) {
  MpiPrices found = of_file(library, distance, version);
  found.distance_ = distance;
  const std::string learned = learned_file_of(library);
  if (access(learned.c_str(), F_OK) != 0) return found;
  if (base::Result<std::vector<MpiLearned>> read = read_mpi_learned(learned)) {
    std::erase_if(*read, [&](const MpiLearned& one) { return one.distance != distance || (!version.empty() && one.version != version); });
    found.learned_ = *std::move(read);
  } else {
    found.warning_ += fmt::format("{}{}; it is left out", found.warning_.empty() ? "" : ". ", read.error().message);
  }
  return found;
}

MpiPrices MpiPrices::of_file(MpiLibrary library, Distance distance, std::string_view version) {
  const std::string file = file_of(library, distance);
  if (access(file.c_str(), F_OK) != 0) return usual(library, distance);
  base::Result<MpiPrices> found = read(file, library);
  const bool of_version = !found || version.empty() || found->version_ == version;
  if (found && of_version && found->machine() == machine_name()) return *std::move(found);
  MpiPrices instead = usual(library, distance);
  const std::string why = !found        ? found.error().message
                          : !of_version ? fmt::format("{} is of {}, this is {}", file, found->version_, version)
                                        : fmt::format("{} was measured on {}, this is {}", file, found->machine(), machine_name());
  instead.warning_ = why + "; the usual times of MPI's ways hold. `lacuna guide --mpi MPICC` measures them";
  return instead;
}

}  // namespace lacuna::guide
