#include "lacuna/nic/tcp.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace lacuna::nic::tcp {

Result<std::optional<Caller>> Acceptor::next(std::span<pollfd> watched, std::int64_t until) {
  for (;;) {
    // First: of several that were complete at once, nothing would be heard any more.
    const auto complete = std::ranges::find_if(callers_, [this](const Caller& caller) { return caller.request.size() == request_bytes_; });
    if (complete != callers_.end()) {
      Caller caller = std::move(*complete);
      callers_.erase(complete);
      return caller;
    }
    const std::int64_t now = base::now_ns();
    std::erase_if(callers_, [now](const Caller& caller) { return caller.until <= now; });
    std::int64_t wake = until;
    std::vector<pollfd> waiting;
    waiting.reserve(1 + callers_.size() + watched.size());
    waiting.push_back({listener_.get(), POLLIN, 0});
    for (const Caller& caller : callers_) {
      waiting.push_back({caller.socket.get(), POLLIN, 0});
      wake = std::min(wake, caller.until);
    }
    waiting.insert(waiting.end(), watched.begin(), watched.end());
    if (::poll(waiting.data(), waiting.size(), poll_ms(wake)) < 0 && errno != EINTR)
      return std::unexpected(base::system_error("poll", errno));

    bool happened = false;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      watched[i].revents = waiting[1 + callers_.size() + i].revents;
      happened = happened || watched[i].revents != 0;
    }
    if (happened) return std::nullopt;
    for (std::size_t i = callers_.size(); i-- > 0;) {
      if (waiting[1 + i].revents != 0 && !hear(callers_[i])) callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waiting[0].revents != 0) LACUNA_TRY(accept_all());
    if (now >= until) return std::nullopt;
  }
}

Result<void> Acceptor::accept_all() {
  for (std::size_t count = 0; count < most_callers_; ++count) {
    base::Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:  // those who have not said who they are give way
          ran_out_of_files_ = true;
          if (callers_.empty()) return base::fail(base::Code::limit, base::system_error("accept", errno).message);
          callers_.erase(callers_.begin());
          continue;
        case EBADF:
        case EINVAL:
        case ENOTSOCK: return std::unexpected(base::system_error("accept", errno));
        default: return {};  // nobody is left, or somebody left before being accepted
      }
    }
    Caller caller{.socket = std::move(socket), .until = base::now_ns() + request_ns_, .challenge = {}, .request = {}};
    if (!greet_(caller)) continue;
    if (callers_.size() == most_callers_) callers_.erase(callers_.begin());
    callers_.push_back(std::move(caller));
  }
  return {};
}

// Takes what has come of the request, and no byte of what follows it; false: nothing more will come.
bool Acceptor::hear(Caller& caller) const {
  const std::size_t had = caller.request.size();
  caller.request.resize(request_bytes_);
  const ssize_t n = recv(caller.socket.get(), caller.request.data() + had, request_bytes_ - had, MSG_DONTWAIT);
  const bool later = n < 0 && (errno == EINTR || errno == EAGAIN);
  caller.request.resize(had + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return n > 0 || later;
}

std::vector<base::Fd> Acceptor::close() {
  [[maybe_unused]] const Result<void> all = accept_all();
  std::vector<base::Fd> sockets;
  sockets.reserve(callers_.size());
  for (Caller& caller : callers_) sockets.push_back(std::move(caller.socket));
  callers_.clear();
  listener_ = base::Fd();
  return sockets;
}

void Acceptor::forget() {
  callers_.clear();
  listener_ = base::Fd();
}

}  // namespace lacuna::nic::tcp
