#include "lacuna/nic/model/schedule.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::nic::model {

Schedule::Schedule(int ranks) : processes_(static_cast<std::size_t>(ranks)) {}

bool Schedule::run(const std::function<void(int rank)>& body) {
  std::vector<Fiber> stacks(processes_.size());
  Fiber caller;
  for (int rank = 0; std::cmp_less(rank, processes_.size()); ++rank) {
    Fiber& own = stacks[static_cast<std::size_t>(rank)];
    const bool made = own.make([this, rank, &own, &caller, &body] {
      body(rank);
      const int to = next();
      own.leave(to < 0 ? caller : stack(to));
    });
    if (!made) return false;
  }
  stacks_.swap(stacks);
  for (int rank = 0; std::cmp_less(rank, processes_.size()); ++rank) waiting_.emplace(process(rank).clock, rank);
  caller.switch_to(stack(next()));
  stacks_.clear();
  return true;
}

int Schedule::next() {
  for (;;) {
    const Time first = waiting_.empty() ? std::numeric_limits<Time>::max() : waiting_.begin()->first;
    if (!events_.empty() && events_.top().time <= first) {
      run_event();
      continue;
    }
    if (waiting_.empty()) return -1;
    const auto [time, rank] = *waiting_.begin();
    waiting_.erase(waiting_.begin());
    Process& p = process(rank);
    if (p.asleep) {
      p.asleep = false;
      p.idle += time - p.began;
      p.clock = time;
    }
    return rank;
  }
}

void Schedule::hand_over(int from) {
  const int to = next();
  if (to != from) stack(from).switch_to(stack(to));
}

void Schedule::settle(int rank, Time lookahead) {
  const Time now = process(rank).clock;
  for (;;) {
    // Strictly in order also among equals; with a lookahead nobody can tell.
    const bool others = !waiting_.empty();
    const Time first = others ? waiting_.begin()->first : 0;
    const bool behind = others && (lookahead == 0 ? *waiting_.begin() < std::pair(now, rank) : first < now - lookahead);
    const bool due = !events_.empty() && events_.top().time <= now;
    // An event is for everybody: whoever has not got that far may still do what it depends on.
    if (behind || (others && due && first < events_.top().time)) {
      waiting_.emplace(now, rank);
      hand_over(rank);
    } else if (due) {
      run_event();
    } else {
      return;
    }
  }
}

void Schedule::run_event() {
  const Event event = std::move(const_cast<Entry&>(events_.top()).event);
  events_.pop();
  event();
}

bool Schedule::sleep(int rank, Time deadline, Time step) {
  Process& p = process(rank);
  if (std::exchange(p.news, false)) return true;
  p.asleep = true;
  p.woken = false;
  p.began = p.clock;
  p.step = step;
  p.until = std::max(p.clock, deadline);
  waiting_.emplace(p.until, rank);
  hand_over(rank);
  return p.woken;
}

void Schedule::wake(int rank, Time time) {
  Process& p = process(rank);
  if (!p.asleep) {
    p.news = true;
    return;
  }
  const Time polls = (std::max(time, p.began + 1) - p.began + p.step - 1) / p.step;
  const Time at = p.began + polls * p.step;
  if (at >= p.until) return;
  waiting_.erase({p.until, rank});
  waiting_.emplace(p.until = at, rank);
  p.woken = true;
}

void Schedule::at(Time time, Event event) { events_.push({time, ++numbered_, std::move(event)}); }

}  // namespace lacuna::nic::model
