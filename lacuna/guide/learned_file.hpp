// learned_file: what programs learned, of any kind, in a file beside a profile. A process that adds to it holds a lock,
// reads, and puts a new file in its place, so a reader never sees half of one, and nothing is lost when many end at
// once. The lock is a file of its own, since the other one is replaced. Internal to the guide.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/guide/json_fields.hpp"

namespace lacuna::guide {

/// What the past counts for.
inline constexpr int kMostSamples = 256;

/// Entries of a file, as JSON. Errors: io; invalid_argument (not such a file). Of another machine: none.
Result<std::vector<fields::Json>> read_entries(const std::string& file);
/// Calls `change` with the entries, whatever they are where the file cannot be read, and puts what it returns in their
/// place. Processes that do so at the same time wait for one another. Errors: io, timeout.
Result<void> replace_entries(const std::string& file,
                             const std::function<Result<std::vector<fields::Json>>(std::span<const fields::Json>)>& change);
/// The member `log_ratio` and `samples` of an entry.
struct LearnedRatio {
  double log_ratio = 0;
  int samples = 0;
};
Result<LearnedRatio> ratio_in(const fields::Json& json, const std::string& where);

/// `One` has first, second, log_ratio, samples and same(). `parse(json, where)`: a Result of one, or of nothing if
/// another version has written it.
template <class One, class Parse>
Result<std::vector<One>> parse_learned(std::span<const fields::Json> entries, const std::string& file, const Parse& parse) try {
  std::vector<One> learned;
  for (const fields::Json& each : entries) {
    if (!each.is_object()) return base::fail(base::Code::invalid_argument, file + " holds what is no object");
    std::optional<One> one = LACUNA_TRY(parse(each, file));
    if (one) learned.push_back(*std::move(one));
  }
  return learned;
} catch (const fields::Json::exception& error) {
  return base::fail(base::Code::invalid_argument, file + ": " + error.what());
}

/// Adds one to others: of what is the same, the mean. The older of two counts for no more than it has samples.
template <class One>
void add_learned(std::vector<One>& all, const One& one) {
  const auto found = std::ranges::find_if(all, [&](const One& old) { return old.same(one); });
  if (found == all.end()) {
    all.push_back(one);
    all.back().samples = std::min(one.samples, kMostSamples);
    return;
  }
  const double ratio = found->first == one.first ? one.log_ratio : -one.log_ratio;
  const int samples = found->samples + one.samples;
  found->log_ratio = (found->log_ratio * found->samples + ratio * one.samples) / std::max(1, samples);
  found->samples = std::min(samples, kMostSamples);
}

template <class One, class Parse, class Dump>
Result<void> merge_into(const std::string& file, std::span<const One> learned, const Parse& parse, const Dump& dump) {
  return replace_entries(file, [&](std::span<const fields::Json> entries) -> Result<std::vector<fields::Json>> {
    std::vector<One> all = LACUNA_TRY((parse_learned<One>(entries, file, parse)));
    for (const One& one : learned) add_learned(all, one);
    if (all.size() > kMostLearned) {
      std::ranges::sort(all, std::greater(), &One::samples);
      all.resize(kMostLearned);
    }
    std::vector<fields::Json> made;
    std::ranges::transform(all, std::back_inserter(made), dump);
    return made;
  });
}

}  // namespace lacuna::guide
