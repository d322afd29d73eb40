// The listening side: everybody who connects has a moment to say a request of fixed length, all at the same time. Whoever is silent, or many,
// holds up nobody else.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/base/base.hpp"

namespace lacuna::protocol::meeting {

using base::Result;

/// Somebody who has connected.
struct Caller {
  base::Fd socket;
  std::int64_t until = 0;  ///< for the whole request
  std::string challenge;   ///< what it was greeted with
  std::string request;     ///< as much as has come
};

class Acceptor {
 public:
  /// Looks at, or says a first word to, one who has just connected; false: it is not heard.
  using Greet = std::function<bool(Caller&)>;

  /// `listener` does not block. Beyond `most_callers` that have not finished their request, the oldest is dropped.
  Acceptor(base::Fd listener, std::size_t request_bytes, std::size_t most_callers, Greet greet)
      : listener_(std::move(listener)), request_bytes_(request_bytes), most_callers_(most_callers), greet_(std::move(greet)) {}

  /// One whose request is complete. Nothing at `until`, or when something happens to one of `watched`, whose revents say what.
  /// Errors: limit (no more files may be open), io.
  Result<std::optional<Caller>> next(std::span<pollfd> watched, std::int64_t until);
  /// Some were dropped since this process may not open more files.
  [[nodiscard]] bool ran_out_of_files() const { return ran_out_of_files_; }
  /// Listens no longer; those whom next() has not given out yet.
  std::vector<base::Fd> close();

 private:
  Result<void> accept_all();
  bool hear(Caller& caller) const;

  base::Fd listener_;
  std::size_t request_bytes_;
  std::size_t most_callers_;
  Greet greet_;
  bool ran_out_of_files_ = false;
  std::vector<Caller> callers_;  // in the order in which they came
};

}  // namespace lacuna::protocol::meeting
