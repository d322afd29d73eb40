#include "tools/bench/job/talk.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "tools/bench/job/pair.hpp"

namespace lacuna::bench {

Talk::Talk(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Broken(path + " is too long for a socket");
  path.copy(address.sun_path, path.size());
  if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Broken(base::system_error("connect " + path, errno).text());
}

void Talk::say(const nlohmann::json& line) const {
  const std::string text = line.dump() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = ::send(socket_.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw Broken(base::system_error("send", errno).text());
    done += static_cast<std::size_t>(sent);
  }
}

bool Talk::hear(std::string& line) {
  for (;;) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return true;
    }
    char chunk[4096];
    const ssize_t got = ::read(socket_.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    heard_.append(chunk, static_cast<std::size_t>(got));
  }
}

}  // namespace lacuna::bench
