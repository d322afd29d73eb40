// A thread that answers peers while the program is elsewhere: providers in software answer only within calls of
// libfabric, and this NIC tells what a key stands for only when it polls. The thread sleeps until a completion queue
// has something, and leaves that to a program that polls by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "lacuna/base/base.hpp"

namespace lacuna::nic::ofi {

class Context;

class Attendant {
 public:
  /// Errors: limit: the system has no thread or no file for it.
  static base::Result<std::unique_ptr<Attendant>> create(Context& context);
  Attendant(Context& context, base::Fd bell) : context_(context), bell_(std::move(bell)) {}
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  /// The program uses the Context until the lock goes. One call may be within another.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> used() {
    std::unique_lock<std::recursive_mutex> lock(mutex_);
    used_ns_ = base::now_ns();
    return lock;
  }
  /// There are other queues now.
  void ring() const;

 private:
  void run(const std::stop_token& stop);

  Context& context_;
  base::Fd bell_;  // readable: ring() was called
  std::recursive_mutex mutex_;
  std::int64_t used_ns_ = 0;  // when the program last used the Context
  std::jthread thread_;
};

}  // namespace lacuna::nic::ofi
