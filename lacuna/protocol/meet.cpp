#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "lacuna/protocol/meeting/meeting.hpp"

namespace lacuna::protocol {
namespace {

using base::Code;
using nic::tcp::kLeastSecretBytes;
constexpr double kMostSeconds = 1e9;

// Whoever coordinates has a socket to each of the others at the same time, and in the end all have.
Result<void> enough_files(int size) {
  rlimit files{};
  constexpr rlim_t kMeetingItself = 8;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= static_cast<rlim_t>(size) + kMeetingItself) return {};
  return base::fail(Code::limit, fmt::format("a meeting of {} processes takes as many open files; this process may open {} (RLIMIT_NOFILE)",
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

Group meet(nic::World& world, int rank) {
  Group group;
  group.rank = rank;
  for (int peer = 0; peer < world.ranks(); ++peer)
    group.peers.push_back(peer == rank ? nullptr : std::make_unique<Borrowed>(world.bootstrap(rank, peer)));
  return group;
}

Result<Group> meet(const Meeting& meeting) {
  const bool by_tcp = meeting.address.find(':') != std::string::npos;
  if (meeting.address.empty()) return base::fail(Code::invalid_argument, "a meeting needs a name, or host:port");
  if (meeting.size < 1) return base::fail(Code::invalid_argument, fmt::format("a meeting of {} processes", meeting.size));
  if (meeting.size > kMostRanks)
    return base::fail(Code::limit, fmt::format("a meeting of {} processes; at most {} can meet", meeting.size, kMostRanks));
  if (meeting.rank < -1 || meeting.rank >= meeting.size)
    return base::fail(Code::invalid_argument, fmt::format("rank {} of {} processes", meeting.rank, meeting.size));
  if (by_tcp && meeting.rank < 0)
    return base::fail(Code::invalid_argument, fmt::format("a meeting at {} needs the rank: rank 0 listens there", meeting.address));
  if (by_tcp && meeting.secret.size() < kLeastSecretBytes)
    return base::fail(Code::invalid_argument,
                      fmt::format("a meeting at {} needs a secret of {} bytes or more", meeting.address, kLeastSecretBytes));
  if (!(meeting.timeout_s > 0)) return base::fail(Code::invalid_argument, fmt::format("a timeout of {} s", meeting.timeout_s));
  LACUNA_TRY(enough_files(meeting.size));

  const meeting::Plan plan{.size = meeting.size,
                           .rank = meeting.rank,
                           .deadline = base::now_ns() + static_cast<std::int64_t>(std::min(meeting.timeout_s, kMostSeconds) * 1e9),
                           .where = by_tcp ? meeting.address : fmt::format("\"{}\"", meeting.address),
                           .machine = meeting.machine};
  return by_tcp ? meeting::meet_by_tcp(meeting.address, meeting.secret, plan) : meeting::meet_by_name(meeting.address, plan);
}

}  // namespace lacuna::protocol
