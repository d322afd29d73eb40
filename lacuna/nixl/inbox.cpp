#include "lacuna/nixl/inbox.hpp"

#include <fmt/format.h>

#include <utility>

namespace lacuna::nixl {

Result<void> Inbox::put(const std::string& agent, std::string text) {
  const std::scoped_lock lock(mutex_);
  if (bytes_ + text.size() > kMostBytes)
    return base::fail(base::Code::limit, fmt::format("{} bytes of notifications wait here; fetch them by getNotifs()", kMostBytes));
  bytes_ += text.size();
  all_.emplace_back(agent, std::move(text));
  return {};
}

notif_list_t Inbox::take() {
  const std::scoped_lock lock(mutex_);
  bytes_ = 0;
  return std::exchange(all_, {});
}

}  // namespace lacuna::nixl
