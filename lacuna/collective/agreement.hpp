// What all ranks have to know of one another before an exchange begins. Terms of all ranks are combined into the same
// ones on each, by recursive doubling: log2(ranks) messages of two cache lines.
//
// Whether messages fit is asked of a sum: for each message its sender adds a number made of the pair, its place among
// the pair's messages, and its bytes; its receiver subtracts the same. Over all ranks that is 0 if each message has as
// many bytes at both ends, and otherwise as good as never (2^-64). Only if it is not do the ranks tell one another what
// they send, and all of them learn of one pair that does not fit.
#pragma once

#include "lacuna/collective/program.hpp"

namespace lacuna::collective {

enum class ExchangeKind : std::int16_t { alltoallw, neighbor_exchange, transpose };
[[nodiscard]] std::string_view kind_name(ExchangeKind kind);

struct Terms {
  std::int16_t kind_low = 0, kind_high = 0;
  std::int16_t wanted_low = 0, wanted_high = 0;  // a Schedule
  std::int64_t shape_low = 0, shape_high = 0;    // of what all ranks have to say alike: a digest
  std::uint64_t edges = 0;                       // the sum above
  std::int64_t largest = 0, most_bytes = 0, most_messages = 0, most_runs = 0;
  std::int32_t shared_memory = 1;
  std::int32_t by_hub = 1;
  std::int32_t sharing = 1;  // a NIC, at most
  // The highest price of each kind that the profile of any rank has; 0: none has any. Whether all have
  guide::ExchangePrices prices{};
  std::int32_t all_priced = 0;
  std::int32_t refused = 0;  // base::Code + 1 of the lowest rank whose arguments cannot be, and
  std::int32_t refuser = INT32_MAX;
  std::int32_t misfit_to = INT32_MAX, misfit_from = INT32_MAX;  // the lowest pair whose messages do not fit

  void combine(const Terms& other);
  /// Of what another rank sent. Errors: malformed (prices that are none).
  [[nodiscard]] Result<void> check() const;
};

/// A number that other values hardly have.
[[nodiscard]] std::uint64_t digest_of(std::span<const std::int64_t> values);

/// Sizes of the messages to each rank, or from each, in order.
using Sizes = std::vector<std::vector<std::int64_t>>;
/// What a rank adds for its messages, and subtracts for those that it expects.
std::uint64_t edges(int rank, const Sizes& sends, const Sizes& receives);

/// Combines `terms` of all ranks, then calls `then`.
class Combining {
 public:
  /// The rounds are added to the program; this has to live until they are over.
  void begin(Program& program, int rank, int size, const Terms& terms, std::function<Result<void>(const Terms&)> then);

 private:
  Round& round(int to, int from);
  Terms mine_, theirs_;
  Layout layout_;
  std::deque<Round> rounds_;
};

/// Tells every rank what it is sent, and finds which pair does not fit. `then` gets the misfits' fields.
class Misfit {
 public:
  void begin(Program& program, int rank, const Sizes& sends, const Sizes& receives, std::function<Result<void>(const Terms&)> then);
  /// What does not fit at this rank, in words; empty if all does.
  [[nodiscard]] const std::string& here() const { return here_; }

 private:
  struct Said {
    std::int64_t count = 0;
    std::uint64_t digest = 0;
    std::int64_t sizes[4] = {};
    bool operator==(const Said&) const = default;
    [[nodiscard]] std::string text() const;
  };
  static Said said(const std::vector<std::int64_t>& sizes);
  std::vector<Said> out_, in_;
  Round round_;
  Combining combining_;
  std::string here_;
};

}  // namespace lacuna::collective
