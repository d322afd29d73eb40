// The coordinator: which processes have come, which ranks they get, and that either all go on or all learn why not. It
// hides whether
// the others are Unix sockets or TCP connections.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lacuna/protocol/bootstrap/message.hpp"

namespace lacuna::protocol::bootstrap {

using nic::tcp::Acceptor;
using nic::tcp::Caller;

/// What a process wants of a bootstrap.
struct BootstrapPlan {
  int size = 0;
  int rank = -1;              ///< -1: as they come
  std::int64_t deadline = 0;  ///< of base::now_ns()
  std::string where;          ///< for messages
  std::string machine;        ///< that it says it is on; empty: its own
};

/// How many had come when the deadline passed: the most within the last second, since all leave at about the same time,
/// and the last would say that no process came.
class Fullest {
 public:
  void note(int came, std::string text);
  /// The error of a deadline that passed; `otherwise` if nothing was noted.
  [[nodiscard]] base::Error timeout(const std::string& otherwise) const;

 private:
  struct Attendance {
    int came = 0;
    std::string text;
    std::int64_t until = 0;
  };
  Attendance now_;
  Attendance before_;
};

/// What a process that came asks for.
struct Asked {
  int size = 0;
  int rank = -1;
  bool no_memory = false;  ///< the process comes only to say that it has no memory to take part
};

struct Member {
  base::Fd socket;  ///< none: the coordinator itself
  int asked = -1;
  std::string request;
  bool no_memory = false;
};

struct Gathered {
  int rank = 0;                 ///< the coordinator's own
  std::vector<Member> members;  ///< by rank
};

/// Whether a caller may take part at all, from its request. An error: it may not, and was told so if it should be.
using Check = std::function<Result<Asked>(const Caller&)>;

/// Waits until all have come. One who asks for what cannot be is refused, the others go on waiting. One who hangs up
/// leaves its place to another.
/// Errors: timeout (how many came, which are missing), limit, io.
Result<Gathered> gather(Acceptor& acceptor, const BootstrapPlan& plan, const Check& check, Fullest& fullest);

/// Hears from each process that it is done, and says go. Errors: peer_lost, timeout, malformed.
Result<void> conclude(const Gathered& gathered, std::int64_t deadline);
/// Tells all why there will be no group; the error.
base::Error give_up(const Gathered& gathered, base::Error error);

/// The ranks of the processes that came, in that order: the one that was asked for, and for the others (-1) the lowest
/// that are left.
[[nodiscard]] std::vector<int> assign_ranks(std::span<const int> asked, int size);
/// "3 of 5 processes came to HERE; ranks 1 and 3 are missing"
[[nodiscard]] std::string attendance(std::span<const int> asked, const BootstrapPlan& plan);

}  // namespace lacuna::protocol::bootstrap
