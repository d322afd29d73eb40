#include "lacuna/nixl/inbox.hpp"

#include <fmt/format.h>

#include <utility>

namespace lacuna::nixl {

Result<void> Inbox::put(const std::string& agent, std::string text) {
  const std::scoped_lock lock(mutex_);
  const std::size_t bytes = sizeof(notif_list_t::value_type) + agent.size() + text.size();
  if (bytes_ + bytes > kMostBytes)
    return base::fail(base::Code::limit, fmt::format("{} bytes of notifications wait here; fetch them by getNotifs()", kMostBytes));
  bytes_ += bytes;
  all_.emplace_back(agent, std::move(text));
  return {};
}

notif_list_t Inbox::take() {
  const std::scoped_lock lock(mutex_);
  bytes_ = 0;
  return std::exchange(all_, {});
}

}  // namespace lacuna::nixl
