#include "lacuna/nixl/attempt.hpp"

#include <fmt/format.h>

#include <utility>

namespace lacuna::nixl {

void Attempt::end(Outcome outcome) {
  {
    const std::scoped_lock lock(mutex_);
    if (outcome)
      for (std::string& text : kept_)
        if (const Result<void> told = (*outcome)->notify(std::move(text)); !told)
          base::log(base::Level::error, fmt::format("NIXL: a notification is lost: {}", told.error().text()));
    if (!outcome && !kept_.empty())
      base::log(base::Level::error, fmt::format("NIXL: {} notifications are lost: {}", kept_.size(), outcome.error().text()));
    kept_.clear();
    outcome_ = std::move(outcome);
  }
  made_.end();
}

std::optional<Attempt::Outcome> Attempt::outcome(std::int64_t deadline) const {
  if (deadline > 0) made_.wait(deadline);
  const std::scoped_lock lock(mutex_);
  return outcome_;
}

Result<void> Attempt::notify(std::string text) {
  LACUNA_TRY(Connection::check_notice(text));
  const std::scoped_lock lock(mutex_);
  if (outcome_) {
    if (!*outcome_) return std::unexpected(outcome_->error());
    return (**outcome_)->notify(std::move(text));
  }
  if (kept_bytes_ + text.size() > kMostKept)
    return base::fail(base::Code::limit,
                      fmt::format("{} bytes of notifications wait for an agent that has not answered yet; {} may", kept_bytes_, kMostKept));
  kept_bytes_ += text.size() + sizeof(std::string);
  kept_.push_back(std::move(text));
  return {};
}

}  // namespace lacuna::nixl
