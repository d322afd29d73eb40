// One rank's part of a race that `lacuna bench mpi` referees: it opens a case, takes its turns when it is told to, and
// closes it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/bench/job/turns.hpp"

namespace lacuna::bench {

/// Eight contiguous bytes, and every DDTBench layout at every size.
const std::vector<MessageCase>& mpi_cases();

class Session {
 public:
  explicit Session(const Pair& pair) : pair_(pair) {}

  /// Both ranks call it with the same commands. Rank 0 answers
  ///   {"open": case}                      {"contenders": [name, ..], "refused": [text, ..]}; what was open is closed
  ///   {"verify": contender}               {}
  ///   {"pace": true}                      {}; before the first batch: how many round trips make one of each contender
  ///   {"batch": contender}                {"us": of one message}
  ///   {"close": true}                     {}
  ///   {"commit": times, "blocks", "seed"} {"us": [of each MPI_Type_commit]}
  /// and rank 1 an empty object. Throws std::exception where a command makes no sense or wrong bytes arrived, and
  /// Broken.
  nlohmann::json answer(const nlohmann::json& command);

 private:
  nlohmann::json open(std::size_t index);
  nlohmann::json turn(const nlohmann::json& command);
  void close();

  const Pair& pair_;
  std::unique_ptr<Exchange> exchange_;
  std::optional<Asker> asker_;  // of rank 0
};

}  // namespace lacuna::bench
