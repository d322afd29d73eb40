#include "lacuna/protocol/stream/idle_thread.hpp"

#include <chrono>
#include <system_error>

#include "lacuna/base/base.hpp"

namespace lacuna::protocol {

IdleThread::~IdleThread() {
  ends_.release();
  if (thread_.joinable()) thread_.join();
}

void IdleThread::wake() {
  if (runs_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();  // it has ended
  try {
    base::without_signals([this] { thread_ = std::thread([this] { run(); }); });
  } catch (const std::system_error&) {
    runs_ = false;
  }
}

// What comes between the last look and the end is looked for again.
void IdleThread::run() {
  do {
    do {
      if (ends_.try_acquire_for(std::chrono::nanoseconds(pause_ns_))) return;
    } while (look_());
    runs_ = false;
  } while (look_() && !runs_.exchange(true));
}

}  // namespace lacuna::protocol
