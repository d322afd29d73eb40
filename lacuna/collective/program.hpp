// What a rank does in an exchange, as a list of rounds: each posts receives and sends, and is over once all are done.
// It hides the waiting, and what becomes of the others when something goes wrong.
#pragma once

#include <deque>
#include <functional>

#include "lacuna/collective/collective.hpp"

namespace lacuna::collective {

/// A message: of a receive, memory that is written.
struct Post {
  int peer = 0;
  std::byte* base = nullptr;
  Layout layout;
};

struct Round {
  std::vector<Post> receives, sends;
  /// The CPU's work: before anything is posted, behind the first posts, and after all are done.
  std::function<Result<void>()> before, meanwhile, after;
  int window = 1 << 30;  ///< sends, and receives, under way at once
};

/// A rank that gives up tells all others, so that no rank waits for it: they may wait for one that waits for it, and
/// never see a fault of their own. It is also told of every peer that dies, since a receive from any source ends then.
class Alarm {
 public:
  explicit Alarm(Communicator& ranks) : ranks_(ranks), tag_(ranks.take_tag()) {}
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  Result<void> arm();
  /// Done once there is an alarm; null if no peer could ring it
  [[nodiscard]] protocol::Request* request() const { return request_; }
  /// What is known of the one who rang. The request is gone then.
  base::Error heard(const Result<protocol::Status>& ended);
  /// Unless this is what was heard: the others heard it, too.
  void ring(const base::Error& error);

 private:
  struct Words {
    std::int32_t code = 0;
    std::int32_t rank = 0;
    char text[240] = {};
  };
  Communicator& ranks_;
  int tag_;
  protocol::Request* request_ = nullptr;
  bool heard_ = false;
  Words words_, said_;
  std::vector<protocol::Request*> ringing_;
};

class Program {
 public:
  explicit Program(Communicator& ranks) : ranks_(ranks), tag_(ranks.take_tag()), alarm_(ranks) {}
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Behind those that are there; it is kept by the caller until it is over. A round's `after` may add more.
  void add(const Round& round) { rounds_.push_back(&round); }
  [[nodiscard]] bool idle() const { return rounds_.empty(); }
  /// Moves on until all rounds are over, or the time is up: false. Without time it looks once at everything that is
  /// next. Errors: what went wrong. Then everything that was under way is given up, and the others know.
  Result<bool> go_on(std::int64_t timeout_ns);
  void give_up(const base::Error& error);
  /// The error that comes now is all ranks': nobody has to be told.
  void known_to_all() { known_to_all_ = true; }

 private:
  // Messages of one direction, in order.
  struct Lane {
    const std::vector<Post>* posts = nullptr;
    std::size_t next = 0;
    std::deque<protocol::Request*> under_way;
    [[nodiscard]] protocol::Request* head() const { return under_way.empty() ? nullptr : under_way.front(); }
    [[nodiscard]] bool over() const { return under_way.empty() && next == posts->size(); }
  };
  Result<bool> run(std::int64_t timeout_ns);
  Result<void> begin(const Round& round);
  Result<void> fill(Lane& lane);
  Result<void> took(Lane& lane, const Result<protocol::Status>& ended);
  Result<bool> look();
  Result<bool> wait(std::int64_t deadline);

  Communicator& ranks_;
  int tag_;
  Alarm alarm_;
  std::deque<const Round*> rounds_;
  bool begun_ = false;  // the first of them
  bool known_to_all_ = false;
  Lane receives_, sends_;
};

}  // namespace lacuna::collective
