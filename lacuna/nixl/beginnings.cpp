#include "lacuna/nixl/beginnings.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "lacuna/nixl/attempt.hpp"

namespace lacuna::nixl {

// Whether the transfer can be posted now.
Result<bool> Beginnings::ready(Transfer& transfer) const {
  if (transfer.stage_ == Stage::ready) return true;
  if (transfer.connection == nullptr) {
    const auto made = transfer.attempt->outcome();
    if (!made) return false;
    transfer.connection = LACUNA_TRY(*made);
  }
  if (!LACUNA_TRY(transfer.connection->resolve(transfer.parts, transfer.puts))) return false;
  transfer.stage_ = Stage::ready;
  return true;
}

Result<void> Beginnings::prepare(Transfer& transfer, std::int64_t deadline) {
  if (const auto made = transfer.attempt->outcome(deadline); !made) return {};
  while (!LACUNA_TRY(ready(transfer))) {
    if (base::now_ns() > deadline) return {};
    std::this_thread::yield();
  }
  return {};
}

Result<void> Beginnings::post(Transfer& transfer, std::optional<std::string> notice) {
  std::unique_lock lock(mutex_);
  if (transfer.stage_ == Stage::waiting) return base::fail(base::Code::invalid_argument, "this transfer is under way");
  if (transfer.stage_ == Stage::failed) transfer.stage_ = Stage::unready;
  if (LACUNA_TRY(ready(transfer))) {
    lock.unlock();
    return transfer.connection->post(transfer, std::move(notice));
  }
  transfer.stage_ = Stage::waiting;
  transfer.deadline_ = base::now_ns() + timeout_ns_;
  transfer.notice_ = std::move(notice);
  waiting_.push_back(&transfer);
  return {};
}

// Of one that waits: whether it does no more.
bool Beginnings::begin(Transfer& transfer) {
  const Result<bool> can = ready(transfer);
  if (can && !*can) {
    if (base::now_ns() <= transfer.deadline_) return false;
    transfer.error_ = {base::Code::timeout,
                       "the agent does not answer: is its process stopped, or busy? timeout_s sets how long is waited"};
  } else if (!can) {
    transfer.error_ = can.error();
  } else if (const Result<void> begun = transfer.connection->post(transfer, std::move(transfer.notice_)); !begun) {
    transfer.error_ = begun.error();
  } else {
    return true;
  }
  transfer.stage_ = Stage::failed;
  return true;
}

std::optional<Result<void>> Beginnings::check(Transfer& transfer) {
  {
    const std::scoped_lock lock(mutex_);
    if (transfer.stage_ == Stage::waiting && begin(transfer)) std::erase(waiting_, &transfer);
    if (transfer.stage_ == Stage::failed && transfer.error_) return std::unexpected(*transfer.error_);
    if (transfer.stage_ == Stage::unready) return base::fail(base::Code::invalid_argument, "the transfer was not posted");
    if (transfer.stage_ == Stage::waiting) return std::nullopt;
  }
  return transfer.connection->check(transfer);
}

bool Beginnings::is_ready(const Transfer& transfer) const {
  const std::scoped_lock lock(mutex_);
  return transfer.stage_ == Stage::ready;
}

bool Beginnings::step() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && std::erase_if(waiting_, [this](Transfer* transfer) { return begin(*transfer); }) > 0;
}

bool Beginnings::forget(Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  if (transfer.stage_ == Stage::ready) return false;
  std::erase(waiting_, &transfer);
  return true;
}

}  // namespace lacuna::nixl
