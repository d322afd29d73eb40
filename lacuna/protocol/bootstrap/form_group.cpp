#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>

#include "lacuna/protocol/bootstrap/bootstrap.hpp"

namespace lacuna::protocol {
namespace {

using base::Code;
using nic::tcp::kLeastSecretBytes;
constexpr double kMostSeconds = 1e9;

// The coordinator has a socket to each of the others at the same time, and in the end all processes have.
Result<void> enough_files(int size) {
  rlimit files{};
  constexpr rlim_t kOwnFiles = 8;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= static_cast<rlim_t>(size) + kOwnFiles) return {};
  return base::fail(Code::limit, fmt::format("a group of {} processes takes as many open files; this process may open {} (RLIMIT_NOFILE)",
                                             size, files.rlim_cur));
}

// A channel that a simulated world owns.
class Borrowed final : public nic::Bootstrap {
 public:
  explicit Borrowed(nic::Bootstrap& other) : other_(other) {}
  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override { return other_.exchange(mine, timeout_ns); }

 private:
  nic::Bootstrap& other_;
};

}  // namespace

Group form_group(nic::World& world, int rank) {
  Group group;
  group.rank = rank;
  for (int peer = 0; peer < world.ranks(); ++peer)
    group.peers.push_back(peer == rank ? nullptr : std::make_unique<Borrowed>(world.bootstrap(rank, peer)));
  return group;
}

Group form_group_by_hub(nic::World& world, int rank) {
  Group group;
  group.rank = rank;
  group.hub = world.ranks();
  return group;
}

namespace {

Result<Group> form(const BootstrapOptions& wanted) {
  const bool by_tcp = wanted.address.find(':') != std::string::npos;
  if (wanted.address.empty()) return base::fail(Code::invalid_argument, "a group needs a name, or host:port");
  if (wanted.size < 1) return base::fail(Code::invalid_argument, fmt::format("a group of {} processes", wanted.size));
  if (wanted.size > kMostRanks)
    return base::fail(Code::limit, fmt::format("a group of {} processes; at most {} can connect", wanted.size, kMostRanks));
  if (wanted.rank < -1 || wanted.rank >= wanted.size)
    return base::fail(Code::invalid_argument, fmt::format("rank {} of {} processes", wanted.rank, wanted.size));
  if (by_tcp && wanted.rank < 0)
    return base::fail(Code::invalid_argument, fmt::format("a group at {} needs the rank: rank 0 listens there", wanted.address));
  if (by_tcp && wanted.secret.size() < kLeastSecretBytes)
    return base::fail(Code::invalid_argument,
                      fmt::format("a group at {} needs a secret of {} bytes or more", wanted.address, kLeastSecretBytes));
  if (!(wanted.timeout_s > 0)) return base::fail(Code::invalid_argument, fmt::format("a timeout of {} s", wanted.timeout_s));
  LACUNA_TRY(enough_files(wanted.size));

  const bootstrap::BootstrapPlan plan{
      .size = wanted.size,
      .rank = wanted.rank,
      .deadline = base::now_ns() + static_cast<std::int64_t>(std::min(wanted.timeout_s, kMostSeconds) * 1e9),
      .where = by_tcp ? wanted.address : fmt::format("\"{}\"", wanted.address),
      .machine = wanted.machine};
  return by_tcp ? bootstrap::connect_by_tcp(wanted.address, wanted.secret, plan) : bootstrap::connect_by_name(wanted.address, plan);
}

}  // namespace

Result<Group> form_group(const BootstrapOptions& wanted) try { return form(wanted); } catch (const std::bad_alloc&) {
  if (wanted.address.find(':') != std::string::npos) throw;
  bootstrap::tell_no_memory(wanted.address, wanted.size);
  return base::fail(Code::out_of_memory, "no memory");
}

}  // namespace lacuna::protocol
