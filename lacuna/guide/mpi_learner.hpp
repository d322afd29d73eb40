// mpi_learner: what a preloaded program does to correct how its messages and collectives go, while it runs. For mpi.
//
//   program   MPI_Send ............ MPI_Recv ..... MPI_Send ............ MPI_Recv ..... MPI_Send
//             └────────────── a round ────────────┘└────────────── a round ────────────┘
//
// No call tells what a message takes: a send may be over before its receiver has begun. So what is timed is a round:
// from a transfer to the next one that is like it, with a call between that waits for another rank. All that a way
// costs either rank is part of it, and so is what the program computes, which is the same by either way. contests.hpp
// says which ways are compared when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lacuna/guide/contests.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide {

/// Belongs to one thread at a time.
class MpiLearner {
 public:
  /// `version`: of the MPI, as MpiPrices::find() is told.
  MpiLearner(LearnOptions options, std::string version)
      : options_(options), version_(std::move(version)), contests_(options.one_in, options.learning == Learning::on) {}

  /// A transfer. True: it goes as chosen, as most do. Else start() says how it goes.
  bool rests() { return contests_.rests(); }
  /// A call that waits for another rank.
  void waited() { ++waits_; }
  struct Transfer {
    MpiUse use{};
    Piece piece;
    std::intptr_t to = 0;  ///< messages to one rank are compared, or collectives of one communicator, and
    unsigned ways = ~0U;   ///< those that can be; a bit for each MpiWay
    bool operator==(const Transfer&) const = default;
  };
  /// A transfer begins, at `now` nanoseconds.
  struct Started {
    MpiWay way{};        ///< that it goes
    bool tries = false;  ///< it is part of a trial
    /// By the round that has ended. Choices may have changed. What is of another distance is for the caller to learn.
    std::optional<MpiLearned> learned;
  };
  Started start(MpiPrices& prices, const Transfer& transfer, std::int64_t now);
  /// The transfer that was to come next in a trial went another way than it had to.
  void break_off();

  /// What was found out: the contests that are decided.
  [[nodiscard]] std::span<const MpiLearned> learned() const { return learned_; }
  [[nodiscard]] std::int64_t transfers() const { return contests_.transfers(); }
  [[nodiscard]] std::int64_t tried() const { return contests_.tried(); }
  [[nodiscard]] std::int64_t settled() const { return contests_.settled(); }  ///< contests,
  [[nodiscard]] std::int64_t better() const { return contests_.better(); }    ///< in favour of the other way
  [[nodiscard]] double extra_ns() const { return contests_.extra_ns(); }
  /// Of all transfers, as expected.
  [[nodiscard]] double all_ns() const { return all_ns_; }
  [[nodiscard]] std::string describe() const;

 private:
  struct Subject {
    Distance distance{};
    MpiUse use{};
    Piece piece;
    bool operator==(const Subject&) const = default;
  };
  struct Round {
    std::uint32_t number = 0;  // 0: none is under way
    Transfer of;
    std::int64_t began = 0;
    std::uint64_t waits = 0;
  };
  std::optional<MpiLearned> end_round(MpiPrices& prices, std::int64_t now);

  LearnOptions options_;
  std::string version_;
  Contests<Subject, MpiWay> contests_;
  Round round_;
  std::uint64_t waits_ = 0;
  std::int64_t counted_ = 0;  // transfers whose time is in all_ns_
  double all_ns_ = 0;
  std::vector<MpiLearned> learned_;
};

}  // namespace lacuna::guide
