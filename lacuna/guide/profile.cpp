// Profiles: where they are, what is in them, and what is doubtful about them. docs/reference/files.md has the format.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "lacuna/guide/json_fields.hpp"
#include "lacuna/guide/words.hpp"

namespace lacuna::guide {

using namespace fields;

namespace {

using method::Price;

constexpr int kSchema = 3;
constexpr int kOldest = 2;        // has biases by another name
constexpr double kMostNs = 1e12;  // for one of anything: a thousand seconds
constexpr double kMostCoefficient = 1e6;
constexpr double kMostError = 1e9;
constexpr double kMostRows = 1e9;

Result<method::Prices> prices_of(const Json& json, method::Prices prices, const std::string& where) {
  for (const auto& [name, value] : json.items()) {
    std::size_t i = 0;
    while (i < method::kPrices && method::price_name(static_cast<Price>(i)) != name) ++i;
    if (i == method::kPrices) continue;  // of a newer library
    prices.at(i) = LACUNA_TRY(number(value, "price " + name, 0, kMostNs, where));
  }
  return prices;
}

// {"pack_write/flag": [...], ...}
Result<std::vector<std::array<Bias, 3>>> biases_of(const Json& json, const std::string& where) {
  std::vector<std::array<Bias, 3>> biases(method::methods().size());
  for (const auto& [name, values] : json.items()) {
    const std::size_t slash = name.find('/');
    const auto method = method::find(name.substr(0, slash));
    const auto notify = method::notify_from_name(slash == std::string::npos ? "none" : name.substr(slash + 1));
    if (!method || !notify) continue;  // of another version
    if (!values.is_array() || values.size() != kBiasFeatures)
      return base::fail(base::Code::invalid_argument, fmt::format("{}: bias {} has {} numbers, not {}", where, name,
                                                                  values.is_array() ? values.size() : 0, kBiasFeatures));
    Bias& bias = biases.at(static_cast<std::size_t>(*method - method::methods().data())).at(static_cast<std::size_t>(*notify));
    for (std::size_t i = 0; i < kBiasFeatures; ++i)
      bias.at(i) = LACUNA_TRY(number(values[i], "bias " + name, -kMostCoefficient, kMostCoefficient, where));
  }
  return biases;
}

Result<Profile::Path> path_of(const Json& json, nic::Path which, double message_us, const char* biases_name, const std::string& where) {
  constexpr auto object = Json::value_t::object;
  const Json& prices = *LACUNA_TRY(member(json, "prices", object, "an object", where));
  const Json& biases = *LACUNA_TRY(member(json, biases_name, object, "an object", where));
  // One by one: an error in the middle of an aggregate would leave what was made before it behind.
  Profile::Path path;
  path.path = which;
  path.prices = LACUNA_TRY(prices_of(prices, usual_prices(which, message_us), where));
  path.biases = LACUNA_TRY(biases_of(biases, where));
  path.error_median = LACUNA_TRY(number_in(json, "error_median", kMostError, where));
  path.error_p90 = LACUNA_TRY(number_in(json, "error_p90", kMostError, where));
  path.rows = static_cast<int>(LACUNA_TRY(number_in(json, "rows", kMostRows, where)));
  return path;
}

// {"pair": [14 numbers], "cold": false, "us": [a number for each way]}
Result<void> seen_of(const Json& json, Profile::Class& made, const std::string& file) {
  const auto ways = json.find("ways");
  const auto seen = json.find("seen");
  if (ways == json.end() || seen == json.end()) return {};
  if (!ways->is_array() || !seen->is_array() || seen->size() > Profile::Class::kMostSeen)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{}: ways and seen are not lists, the second of at most {}", file, Profile::Class::kMostSeen));
  std::vector<std::size_t> places;  // those of another version are left out
  for (std::size_t i = 0; i < ways->size(); ++i) {
    const std::optional<Way> way = LACUNA_TRY(way_in((*ways)[i], file));
    if (!way) continue;
    made.ways.push_back(*way);
    places.push_back(i);
  }
  for (const Json& each : *seen) {
    const std::string where = file + ", seen";
    if (!each.is_object()) return base::fail(base::Code::invalid_argument, fmt::format("{} holds what is no object", where));
    Profile::Class::MeasuredPair found;
    found.pair = LACUNA_TRY(pair_in(each, where));
    const std::vector<double> us =
        LACUNA_TRY(numbers_in(*LACUNA_TRY(member(each, "us", Json::value_t::array, "a list", where)), 0, kMostMessage, where));
    if (us.size() != ways->size())
      return base::fail(base::Code::invalid_argument, fmt::format("{}: {} times for {} ways", where, us.size(), ways->size()));
    found.cold = each.value("cold", false);
    for (const std::size_t place : places) found.us.push_back(us[place]);
    made.seen.push_back(std::move(found));
  }
  return {};
}

Result<Profile::Class> class_of(const Json& json, const char* biases_name, const std::string& file) {
  if (!json.is_object()) return base::fail(base::Code::invalid_argument, fmt::format("{}: classes holds what is no object", file));
  Profile::Class made;
  made.message_us = LACUNA_TRY(number_in(json, "message_us", kMostMessage, file));
  for (const auto& [name, path] : LACUNA_TRY(member(json, "paths", Json::value_t::object, "an object", file))->items()) {
    const auto which = nic::path_from_name(name);
    if (!which) continue;  // of a newer library
    const std::string where = fmt::format("{}, path {}", file, name);
    if (!path.is_object()) return base::fail(base::Code::invalid_argument, fmt::format("{} is not an object", where));
    made.paths.push_back(LACUNA_TRY(path_of(path, *which, made.message_us, biases_name, where)));
  }
  LACUNA_TRY(seen_of(json, made, file));
  return made;
}

Result<Profile> profile_of(const Json& json, const std::string& file) {
  if (!json.is_object()) return base::fail(base::Code::invalid_argument, fmt::format("{} is no profile: not a JSON object", file));
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_integer() || *schema < kOldest || *schema > kSchema)
    return base::fail(base::Code::invalid_argument, fmt::format("{}: schema {}, this library reads {} to {}", file,
                                                                schema == json.end() ? "none" : schema->dump(), kOldest, kSchema));
  const char* biases_name = *schema == kOldest ? "leans" : "biases";
  Profile profile;
  profile.nic = LACUNA_TRY(text(json, "nic", file));
  profile.peers = LACUNA_TRY(text(json, "peers", file));
  profile.machine = LACUNA_TRY(text(json, "machine", file));
  profile.version = LACUNA_TRY(text(json, "lacuna_version", file));
  profile.created = LACUNA_TRY(text(json, "created", file));
  profile.file = file;
  for (const Json& each : *LACUNA_TRY(member(json, "classes", Json::value_t::array, "a list", file)))
    profile.classes.push_back(LACUNA_TRY(class_of(each, biases_name, file)));
  // Additions to the rest, which holds without them.
  if (auto messages = messages_in(json, file)) {
    profile.messages = *std::move(messages);
  } else {
    profile.warnings.push_back(messages.error().message + "; the usual times of messages hold. `lacuna guide` measures them again");
  }
  if (const auto exchanges = exchanges_in(json, file)) {
    profile.exchanges = *exchanges;
  } else {
    profile.warnings.push_back(exchanges.error().message + "; the usual prices of exchanges hold. `lacuna guide` measures them again");
  }
  return profile;
}

// "0.10.2" as numbers, which compare as versions do. What is no number is 0.
std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  for (std::size_t at = 0; at <= version.size();) {
    const std::size_t end = std::min(version.find('.', at), version.size());
    int number = 0;
    std::from_chars(version.data() + at, version.data() + end, number);
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

std::string safe_name(const std::string& name) {
  std::string safe = name;
  for (char& c : safe) c = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ? c : '-';
  return safe;
}

}  // namespace

const Profile::Path* Profile::Class::path(nic::Path which) const {
  for (const Path& path : paths) {
    if (path.path == which) return &path;
  }
  return nullptr;
}

namespace {

// As a logarithm; 0 where one of them is not known.
double apart(double message_us, double other_us) {
  return message_us > 0 && other_us > 0 ? std::abs(std::log(message_us / other_us)) : 0.0;
}

}  // namespace

bool Profile::same_class(double message_us, double other_us) { return apart(message_us, other_us) < std::log(kSameClass); }

double Profile::speed_factor(double message_us, double class_us) {
  constexpr double kPower = 0.7;
  return message_us > 0 && class_us > 0 ? std::pow(message_us / class_us, kPower) : 1;
}

const Profile::Class* Profile::of(double message_us) const {
  if (classes.empty()) return nullptr;
  const auto nearest = std::ranges::min_element(classes, {}, [&](const Class& c) { return apart(c.message_us, message_us); });
  return same_class(nearest->message_us, message_us) ? &*nearest : nullptr;
}

// Centred where transfers usually are, so that no coefficient has to undo another.
Bias bias_features(const layout::PairOutline& pair, bool cold) {
  const double bytes = std::log(static_cast<double>(std::max<std::int64_t>(1, pair.bytes()))) - 9;
  const double ours = std::log(static_cast<double>(std::max<std::int64_t>(1, pair.src.runs))) - 4;
  const double theirs = std::log(static_cast<double>(std::max<std::int64_t>(1, pair.dst.runs))) - 4;
  const double from_one = pair.src.contiguous() ? 1 : 0;
  const double to_one = pair.dst.contiguous() ? 1 : 0;
  return {1, bytes, ours, theirs, from_one, to_one, bytes * bytes / 4, cold ? 1.0 : 0.0};
}

double bias_factor(const Bias& bias, const Bias& features) {
  double sum = 0;
  for (std::size_t i = 0; i < kBiasFeatures; ++i) sum += bias[i] * features[i];
  const double most = std::log(kMostBias);
  if (!std::isfinite(sum)) return 1;
  return std::exp(std::clamp(sum, -most, most));
}

Profile usual_profile(const std::string& nic) {
  Profile profile;
  profile.nic = nic_label(nic);
  profile.version = base::version();
  return profile;
}

std::string machine_name() {
  const base::Machine machine = base::machine();
  return fmt::format("{}, last-level cache {} KiB", machine.cpu, machine.llc_bytes / 1024);
}

std::string profiles_folder(bool simulated) {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::string folder = config != nullptr && *config == '/' ? config : fmt::format("{}/.config", home != nullptr ? home : "");
  // Machines that share a home directory have files of their own; a simulated NIC is the same everywhere.
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}/lacuna/profiles/{}", folder, simulated ? "simulated" : safe_name(host.data()));
}

std::string profile_file(const std::string& nic) {
  if (const char* named = std::getenv("LACUNA_PROFILE"); named != nullptr && *named != '\0') return named;
  return fmt::format("{}/{}.json", profiles_folder(simulated_platform(nic).has_value()), safe_name(nic_label(nic)));
}

Result<Profile> read_profile(const std::string& file) {
  const std::string content = LACUNA_TRY(read_text(file));
  try {
    return profile_of(Json::parse(content), file);
  } catch (const Json::exception& error) {
    return base::fail(base::Code::invalid_argument, fmt::format("{} is no profile: {}", file, error.what()));
  }
}

namespace {

// What `lacuna guide` wrote, or else the usual one.
Profile written_profile(const std::string& nic, const std::string& file) {
  Profile profile = usual_profile(nic);
  if (access(file.c_str(), F_OK) != 0) {
    profile.warnings.push_back(
        fmt::format("nothing was measured here ({} is not there): the usual prices hold until `lacuna guide{}` has run", file,
                    nic == "local" ? "" : " --nic " + nic));
    return profile;
  }
  const Result<Profile> read = read_profile(file);
  if (!read) {
    profile.warnings.push_back(fmt::format("{}; the usual prices hold. `lacuna guide` writes a new one", read.error().message));
    return profile;
  }
  profile = *read;
  if (profile.nic != nic_label(nic))
    profile.warnings.push_back(fmt::format("{} is of NIC {}, not of {}", file, profile.nic, nic_label(nic)));
  const bool elsewhere = !simulated_platform(nic) && profile.machine != machine_name();
  if (elsewhere) {
    profile.messages.reset();
    profile.exchanges.reset();
    profile.warnings.push_back(fmt::format("{} is from elsewhere: measured on {}, this is {}", file, profile.machine, machine_name()));
  }
  if (numbers_of(profile.version) < numbers_of(base::version()))
    profile.warnings.push_back(fmt::format("{} is older than the library: of version {}, this is {}; measure again with `lacuna guide`",
                                           file, profile.version, base::version()));
  return profile;
}

}  // namespace

Profile find_profile(const std::string& nic) {
  const std::string file = profile_file(nic);
  Profile profile = written_profile(nic, file);
  const std::string learned = learned_file(file);
  if (access(learned.c_str(), F_OK) != 0) return profile;
  if (Result<std::vector<Learned>> read = read_learned(learned)) {
    profile.learned = *std::move(read);
  } else {
    profile.warnings.push_back(read.error().message + "; it is left out");
  }
  return profile;
}

}  // namespace lacuna::guide
