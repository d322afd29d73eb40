#include "lacuna/method/one_sided.hpp"

#include <algorithm>
#include <limits>

namespace lacuna::method {

std::int64_t largest_write(const nic::Limits& limits) {
  return std::min<std::int64_t>(limits.max_message_bytes, std::numeric_limits<std::int32_t>::max());
}

Result<void> WriteSender::begin() {
  rewind();
  flagged_ = transfer_.notify == Notify::none;
  flag_.count();
  return {};
}

Result<bool> WriteSender::progress() {
  LACUNA_TRY(healthy());
  while (!exhausted() && send_room()) LACUNA_TRY(post_next());
  if (exhausted() && !flagged_ && send_room()) {
    flag_.raise();
    const nic::Sge word = flag_.sge();
    LACUNA_TRY(write({&word, 1}, target_.flag_addr, target_.flag_rkey, true));
    flagged_ = true;
  }
  return exhausted() && flagged_ && sends_in_flight() == 0;
}

}  // namespace lacuna::method
