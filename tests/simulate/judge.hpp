// judge: what may fail in a story, and with which error. Something must have been broken: its rank is dead, or was
// refused something, or has been told nonsense.
#pragma once

#include <string>

#include "tests/simulate/stage.hpp"

namespace lacuna::simulate {

class Judge {
 public:
  explicit Judge(const Stage& stage) : stage_(stage) {}
  /// Whether what a step does may be anything.
  [[nodiscard]] bool may_be_anything(const Step& step) const;
  /// Why this step may not have failed so; empty: it may.
  [[nodiscard]] std::string objects(const Step& step, const base::Error& error) const;
  /// The same of what all ranks do together.
  [[nodiscard]] std::string objects(const base::Error& error) const;
  /// Whether some step has, or may have, failed between these two.
  [[nodiscard]] bool may_fail(const Step& step) const;
  [[nodiscard]] bool any_may_fail() const;

 private:
  [[nodiscard]] bool lacks_keys() const;
  const Stage& stage_;
};

}  // namespace lacuna::simulate
