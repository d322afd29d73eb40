#include "tools/handover/crew.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace lacuna::handover {
namespace {

constexpr std::size_t kPiece = 32 << 10;  // of what a Bootstrap takes at once; one that is not full is the last

// A step that everybody takes: rank 0 hears all, and tells all what `answer` makes of that.
Result<Bytes> send_pieces(nic::Bootstrap& peer, std::span<const std::byte> mine) {
  Bytes theirs;
  bool more_here = true;
  bool more_there = true;
  while (more_here || more_there) {
    nic::Hello piece;
    const auto part = mine.first(std::min(kPiece, mine.size()));
    piece.bytes.assign(part.begin(), part.end());
    mine = mine.subspan(part.size());
    // Both sides go on until both have said a piece that is not full.
    const nic::Hello answer = LACUNA_TRY(peer.exchange(piece, kTimeout));
    if (more_there) theirs.insert(theirs.end(), answer.bytes.begin(), answer.bytes.end());
    more_here = part.size() == kPiece;
    more_there = answer.bytes.size() == kPiece;
  }
  return theirs;
}

void append(Bytes& to, std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  const auto head = bytes_of(length);
  to.insert(to.end(), head.begin(), head.end());
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

Result<Bytes> Crew::swap(int rank, std::span<const std::byte> mine) { return send_pieces(peer(rank), mine); }

Result<std::vector<Bytes>> Crew::gather(std::span<const std::byte> mine) {
  std::vector<Bytes> all(static_cast<std::size_t>(size()));
  all[static_cast<std::size_t>(rank())].assign(mine.begin(), mine.end());
  if (rank() == 0) {
    for (int other = 1; other < size(); ++other) all[static_cast<std::size_t>(other)] = LACUNA_TRY(swap(other, {}));
    Bytes together;
    for (const Bytes& one : all) append(together, one);
    for (int other = 1; other < size(); ++other) LACUNA_TRY(swap(other, together));
    return all;
  }
  LACUNA_TRY(swap(0, mine));
  const Bytes together = LACUNA_TRY(swap(0, {}));
  std::span<const std::byte> left = together;
  for (Bytes& one : all) {
    std::uint64_t length = 0;
    if (left.size() < sizeof length) return base::fail(base::Code::malformed, "rank 0 left out what a rank said");
    std::memcpy(&length, left.data(), sizeof length);
    left = left.subspan(sizeof length);
    if (left.size() < length) return base::fail(base::Code::malformed, "rank 0 cut off what a rank said");
    one.assign(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(length));
    left = left.subspan(length);
  }
  return all;
}

int run_crew(int size, const std::function<int(Crew&)>& work) {
  const std::string address = fmt::format("lacuna-example-{}-{}", getpid(), base::now_ns());
  const auto as = [&](int rank) {
    if (base::usable_cpus() > 1) {
      if (const Result<void> pinned = base::pin_to_cpu(rank % base::usable_cpus()); !pinned)
        base::log(base::Level::warn, pinned.error().text());
    }
    Result<protocol::Group> group = protocol::form_group({.address = address, .size = size, .rank = rank, .secret = {}});
    if (!group) {
      fmt::print(stderr, "rank {}: {}\n", rank, group.error().text());
      return 1;
    }
    Crew crew(std::move(*group));
    return work(crew);
  };
  const pid_t first = getpid();
  std::vector<pid_t> children;
  for (int rank = 1; rank < size; ++rank) {
    const pid_t child = fork();
    if (child < 0) {
      fmt::print(stderr, "rank {} cannot be started: {}\n", rank, std::strerror(errno));
      return 1;
    }
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != first) _exit(1);  // it ended before that was said
      const int code = as(rank);
      std::fflush(nullptr);
      _exit(code);
    }
    children.push_back(child);
  }
  int code = as(0);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) code = std::max(code, 1);
  }
  return code;
}

}  // namespace lacuna::handover
