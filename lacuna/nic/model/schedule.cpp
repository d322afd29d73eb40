#include "lacuna/nic/model/schedule.hpp"

#include <algorithm>
#include <thread>

namespace lacuna::nic::model {

Schedule::Schedule(int ranks) : processes_(static_cast<std::size_t>(ranks)) {}

void Schedule::run(const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  {
    const std::lock_guard lock(mutex_);
    alive_ = static_cast<int>(processes_.size());
    for (int rank = 0; rank < alive_; ++rank) waiting_.emplace(process(rank).clock, rank);
    for (int rank = 0; rank < alive_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        {
          std::unique_lock turn(mutex_);
          process(rank).turn.wait(turn, [&] { return process(rank).running; });
        }
        body(rank);
        std::unique_lock turn(mutex_);
        process(rank).running = false;
        --alive_;
        if (const int first = next(); first >= 0) {
          process(first).running = true;
          process(first).turn.notify_one();
        } else {
          done_.notify_one();
        }
      });
    }
  }
  std::unique_lock lock(mutex_);
  const int first = next();
  process(first).running = true;
  process(first).turn.notify_one();
  done_.wait(lock, [&] { return alive_ == 0; });
}

int Schedule::next() {
  for (;;) {
    const Time first = waiting_.empty() ? kNever : waiting_.begin()->first;
    if (!events_.empty() && events_.top().time <= first) {
      const Event event = std::move(const_cast<Entry&>(events_.top()).event);
      events_.pop();
      event();
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

void Schedule::hand_over(int from, std::unique_lock<std::mutex>& lock) {
  const int to = next();
  if (to == from) return;
  process(from).running = false;
  process(to).running = true;
  process(to).turn.notify_one();
  process(from).turn.wait(lock, [&] { return process(from).running; });
}

void Schedule::settle(int rank) {
  const Time now = process(rank).clock;
  const bool first = (events_.empty() || events_.top().time > now) && (waiting_.empty() || waiting_.begin()->first > now ||
                                                                       (waiting_.begin()->first == now && waiting_.begin()->second > rank));
  if (first) return;
  std::unique_lock lock(mutex_);
  waiting_.emplace(now, rank);
  hand_over(rank, lock);
}

bool Schedule::sleep(int rank, Time deadline, Time step) {
  Process& p = process(rank);
  std::unique_lock lock(mutex_);
  p.asleep = true;
  p.woken = false;
  p.began = p.clock;
  p.step = step;
  p.until = std::max(p.clock, deadline);
  waiting_.emplace(p.until, rank);
  hand_over(rank, lock);
  return p.woken;
}

void Schedule::wake(int rank, Time time) {
  Process& p = process(rank);
  if (!p.asleep) return;
  const Time polls = (std::max(time, p.began + 1) - p.began + p.step - 1) / p.step;
  const Time at = p.began + polls * p.step;
  if (at >= p.until) return;
  waiting_.erase({p.until, rank});
  waiting_.emplace(p.until = at, rank);
  p.woken = true;
}

void Schedule::at(Time time, Event event) { events_.push({time, ++numbered_, std::move(event)}); }

}  // namespace lacuna::nic::model
