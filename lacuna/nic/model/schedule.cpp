#include "lacuna/nic/model/schedule.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace lacuna::nic::model {

Schedule::Schedule(int ranks) : processes_(static_cast<std::size_t>(ranks)) {}

void Schedule::run(const std::function<void(int rank)>& body) {
  // All on one CPU: they take turns anyway, and waking a thread of another one takes ten times as long.
  const Result<int> cpu = base::current_cpu();
  std::vector<std::jthread> threads;
  for (int rank = 0; std::cmp_less(rank, processes_.size()); ++rank) {
    waiting_.emplace(process(rank).clock, rank);
    threads.emplace_back([this, rank, &body, &cpu] {
      // Where it may not, it is slower.
      [[maybe_unused]] const Result<void> pinned = cpu ? base::pin_to_cpu(*cpu) : Result<void>();
      process(rank).turn.take();
      body(rank);
      pass_on();
    });
  }
  pass_on();
  done_.take();
}

void Schedule::pass_on() {
  const int to = next();
  if (to < 0) {
    done_.give();
  } else {
    process(to).turn.give();
  }
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
  if (to == from) return;
  process(to).turn.give();
  process(from).turn.take();
}

void Schedule::settle(int rank, Time lookahead) {
  const Time now = process(rank).clock;
  for (;;) {
    // Strictly in order also among equals; with a lookahead nobody can tell.
    const bool behind =
        !waiting_.empty() && (lookahead == 0 ? *waiting_.begin() < std::pair(now, rank) : waiting_.begin()->first < now - lookahead);
    if (behind) {
      waiting_.emplace(now, rank);
      hand_over(rank);
    } else if (!events_.empty() && events_.top().time <= now) {
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
