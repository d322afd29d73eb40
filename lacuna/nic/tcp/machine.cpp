#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::nic::tcp {

std::string machine_identity() {
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  for (const char* name : {"/proc/self/ns/net", "/proc/self/ns/user"}) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlink(name, target.data(), target.size());
    identity += fmt::format(" {}", std::string_view(target.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))));
  }
  // Without /proc: like no other process
  return identity.starts_with(' ') ? random_bytes(kDigestBytes) : digest(identity);
}

}  // namespace lacuna::nic::tcp
