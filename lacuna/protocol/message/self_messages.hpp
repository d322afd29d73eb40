// Messages from a rank to itself: one copy from layout to layout, once the receive is there. A small one is packed
// aside, so that its send is done.
#pragma once

#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

/// The error of a receive whose message is longer than its room.
std::optional<base::Error> truncation(std::int64_t bytes, std::int64_t room);

class SelfMessages {
 public:
  SelfMessages(LocalRank& local, Completion& completion) : local_(local), completion_(completion) {}

  /// Errors: those of Context::transpack().
  Result<void> send(Request& request);
  /// To a receive, from a send that was not copied yet. Errors: as send().
  Result<void> deliver(Request& receive, Request& send);

 private:
  LocalRank& local_;
  Completion& completion_;
};

}  // namespace lacuna::protocol
