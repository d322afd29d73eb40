#include "lacuna/collective/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace lacuna::collective {
namespace {

// splitmix64's last step (Steele, Lea and Flood 2014), one number after the other.
std::uint64_t mix(std::uint64_t state, std::uint64_t value) {
  std::uint64_t z = state + value + 0x9e37'79b9'7f4a'7c15;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}

std::uint64_t sum(std::uint64_t from, std::uint64_t to, const std::vector<std::int64_t>& sizes) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) all += mix(mix(mix(mix(0, from), to), i), static_cast<std::uint64_t>(sizes[i]));
  return all;
}

Post post(int peer, void* base, const Layout& layout) { return {peer, static_cast<std::byte*>(base), layout}; }

}  // namespace

std::string_view kind_name(ExchangeKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"alltoallw", "neighbor_exchange", "transpose"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "something else";
}

void Terms::combine(const Terms& other) {
  kind_low = std::min(kind_low, other.kind_low);
  kind_high = std::max(kind_high, other.kind_high);
  wanted_low = std::min(wanted_low, other.wanted_low);
  wanted_high = std::max(wanted_high, other.wanted_high);
  shape_low = std::min(shape_low, other.shape_low);
  shape_high = std::max(shape_high, other.shape_high);
  edges += other.edges;
  largest = std::max(largest, other.largest);
  most_bytes = std::max(most_bytes, other.most_bytes);
  most_messages = std::max(most_messages, other.most_messages);
  most_runs = std::max(most_runs, other.most_runs);
  shared_memory = std::min(shared_memory, other.shared_memory);
  by_hub = std::min(by_hub, other.by_hub);
  sharing = std::max(sharing, other.sharing);
  for (std::size_t i = 0; i < guide::kExchangePrices; ++i) prices.ns.at(i) = std::max(prices.ns.at(i), other.prices.ns.at(i));
  all_priced = std::min(all_priced, other.all_priced);
  if (other.refuser < refuser) {
    refuser = other.refuser;
    refused = other.refused;
  }
  if (std::pair(other.misfit_to, other.misfit_from) < std::pair(misfit_to, misfit_from)) {
    misfit_to = other.misfit_to;
    misfit_from = other.misfit_from;
  }
}

// Whatever else is false makes a schedule slow, or fits together on no rank.
Result<void> Terms::check() const {
  const bool none = prices == guide::ExchangePrices{} && all_priced == 0;
  if (none || (prices.possible() && (all_priced == 0 || all_priced == 1))) return {};
  return base::fail(base::Code::malformed, fmt::format("another rank agrees on prices that cannot be: {}; each is from {:g} to {:g} ns",
                                                       prices.describe(), guide::ExchangePrices::kLeast, guide::ExchangePrices::kMost));
}

std::uint64_t digest_of(std::span<const std::int64_t> values) {
  std::uint64_t state = values.size();
  for (const std::int64_t value : values) state = mix(state, static_cast<std::uint64_t>(value));
  return state;
}

std::uint64_t edges(int rank, const Sizes& sends, const Sizes& receives) {
  std::uint64_t all = 0;
  const auto own = static_cast<std::uint64_t>(rank);
  for (std::size_t peer = 0; peer < sends.size(); ++peer) all += sum(own, peer, sends[peer]) - sum(peer, own, receives[peer]);
  return all;
}

// --- combining -------------------------------------------------------------------------------------------------------

// Ranks beyond the largest power of two are spoken for by the one so far below them.
void Combining::begin(Program& program, int rank, int size, const Terms& terms, std::function<Result<void>(const Terms&)> then) {
  mine_ = terms;
  layout_ = *Layout::bytes(sizeof(Terms));
  rounds_.clear();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const auto combine = [this]() -> Result<void> {
    LACUNA_TRY(theirs_.check());
    mine_.combine(theirs_);
    return {};
  };
  const auto replace = [this]() -> Result<void> {
    LACUNA_TRY(theirs_.check());
    mine_ = theirs_;
    return {};
  };
  if (rank >= power) {
    round(rank - power, -1);
    round(-1, rank - power).after = replace;
  } else {
    if (rank + power < size) round(-1, rank + power).after = combine;
    for (int distance = 1; distance < power; distance *= 2) round(rank ^ distance, rank ^ distance).after = combine;
    if (rank + power < size) round(rank + power, -1);
  }
  round(-1, -1).after = [this, then = std::move(then)] { return then(mine_); };
  for (const Round& one : rounds_) program.add(one);
}

Round& Combining::round(int to, int from) {
  Round& made = rounds_.emplace_back();
  if (to >= 0) made.sends.push_back(post(to, &mine_, layout_));
  if (from >= 0) made.receives.push_back(post(from, &theirs_, layout_));
  return made;
}

// --- what does not fit -----------------------------------------------------------------------------------------------

Misfit::Said Misfit::said(const std::vector<std::int64_t>& sizes) {
  Said made{.count = std::ssize(sizes), .digest = digest_of(sizes)};
  std::copy_n(sizes.begin(), std::min(sizes.size(), std::size(made.sizes)), made.sizes);
  return made;
}

std::string Misfit::Said::text() const {
  if (count == 0) return "none";
  std::string all = fmt::format("{} (", count);
  for (std::size_t i = 0; i < std::size(sizes) && std::cmp_less(i, count); ++i) all += fmt::format("{}{}", i == 0 ? "" : ", ", sizes[i]);
  return all + (std::cmp_greater(count, std::size(sizes)) ? ", ... bytes)" : " bytes)");
}

void Misfit::begin(Program& program, int rank, const Sizes& sends, const Sizes& receives, std::function<Result<void>(const Terms&)> then) {
  const Layout layout = *Layout::bytes(sizeof(Said));
  const int size = static_cast<int>(sends.size());
  in_.resize(sends.size());
  for (const auto& sizes : sends) out_.push_back(said(sizes));
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    round_.sends.push_back(post(peer, &out_[static_cast<std::size_t>(peer)], layout));
    round_.receives.push_back(post(peer, &in_[static_cast<std::size_t>(peer)], layout));
  }
  round_.after = [this, &program, rank, size, receives, then = std::move(then)]() -> Result<void> {
    in_[static_cast<std::size_t>(rank)] = out_[static_cast<std::size_t>(rank)];
    Terms terms;
    for (int from = size - 1; from >= 0; --from) {
      const Said& theirs = in_[static_cast<std::size_t>(from)];
      const Said mine = said(receives[static_cast<std::size_t>(from)]);
      if (theirs == mine) continue;
      terms.misfit_to = rank;
      terms.misfit_from = from;
      here_ = fmt::format("rank {} sends rank {} {}, and rank {} receives {}", from, rank, theirs.text(), rank, mine.text());
    }
    combining_.begin(program, rank, size, terms, then);
    return {};
  };
  program.add(round_);
}

}  // namespace lacuna::collective
