// schedule: virtual time. One simulated process runs at a time, the one with the smallest clock, on a stack of its own;
// events (arrivals, completions) run in between, on the stack of whichever process ran last.
//
//   charge()   this process computes: its clock moves, nobody else runs
//   settle()   before it looks or acts: whatever is earlier runs first
//   sleep()    nothing to do: until wake(), or a deadline
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "lacuna/nic/model/fiber.hpp"
#include "lacuna/nic/model/profile.hpp"

namespace lacuna::nic::model {

// A clock that has come there can still be charged
inline constexpr Time kNever = std::numeric_limits<Time>::max() / 2;

class Schedule {
 public:
  explicit Schedule(int ranks);

  /// Runs body(rank) for all ranks, each on a stack of its own and all on this thread, to their ends. False if there is
  /// no memory for so many stacks; then none has run.
  bool run(const std::function<void(int rank)>& body);

  [[nodiscard]] Time clock(int rank) const { return process(rank).clock; }
  void charge(int rank, Time time) { process(rank).clock += time; }
  /// Of the time so far, what `rank` did not spend asleep or on fruitless polls.
  [[nodiscard]] Time idle(int rank) const { return process(rank).idle; }
  void charge_idle(int rank, Time time) {
    charge(rank, time);
    process(rank).idle += time;
  }

  /// Runs all events that are earlier than `rank`, each once all processes are as far as it, and lets run all processes
  /// that are earlier by more than `lookahead`: what they do cannot reach it before its own time. Without one they are
  /// strictly in order.
  void settle(int rank, Time lookahead);
  /// Lets others run until wake(rank), or until `deadline`; false if that came first. Time goes on in whole polls
  /// of `step`.
  bool sleep(int rank, Time deadline, Time step);
  /// Something that `rank` may be waiting for is there at `time`, which is not before any clock that has run. If it is
  /// not asleep, its next sleep ends at once: it may have looked before.
  void wake(int rank, Time time);

  using Event = std::function<void()>;
  void at(Time time, Event event);

 private:
  struct Process {
    Time clock = 0;
    Time idle = 0;
    Time step = 1;   // asleep: the time of a poll
    Time began = 0;  // asleep: since
    Time until = 0;  // asleep: its place among those that wait
    bool asleep = false;
    bool woken = false;
    bool news = false;  // came while it was not asleep
  };
  struct Entry {
    Time time;
    std::uint64_t number;  // among equals the first comes first
    Event event;
    bool operator<(const Entry& other) const { return time != other.time ? time > other.time : number > other.number; }
  };

  [[nodiscard]] Process& process(int rank) { return processes_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Process& process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  /// Runs the events that come before every process. The rank to run next; -1 if all have ended.
  int next();
  void run_event();
  void hand_over(int from);
  [[nodiscard]] Fiber& stack(int rank) { return stacks_[static_cast<std::size_t>(rank)]; }

  std::vector<Process> processes_;
  std::vector<Fiber> stacks_;  // while they run
  std::priority_queue<Entry> events_;
  std::uint64_t numbered_ = 0;
  // Ready processes, and sleeping ones at their deadlines; not the one that runs
  std::set<std::pair<Time, int>> waiting_;
};

}  // namespace lacuna::nic::model
