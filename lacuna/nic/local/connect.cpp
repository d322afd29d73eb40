// How two queue pairs find one another: each side sends its four files and what it can do, maps and probes the other's,
// and says whether that worked, so that both ends fail together or not at all.
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <type_traits>

#include "lacuna/nic/checks.hpp"
#include "lacuna/nic/local/movers.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

constexpr std::uint64_t kMagic = 0x32306e61'6375'6e61;  // changes with the inbox's layout
constexpr std::int64_t kTimeout = 60'000'000'000;       // ns for the peer to do its part

struct Introduction {
  std::uint64_t magic = kMagic;
  std::uint64_t inbox_bytes = sizeof(Inbox);
  std::uint64_t arena_bytes = 0;
  std::uint64_t cookie_addr = 0;
  std::uint64_t cookie = 0;
  LimitsOnWire limits;
  std::uint64_t path = 0;
};

Result<Introduction> introduction_of(const Hello& hello, Path path) {
  Introduction theirs;
  if (hello.bytes.size() != sizeof theirs || hello.files.size() != 4)
    return base::fail(base::Code::malformed, "the peer's introduction is not one of NIC local");
  std::memcpy(&theirs, hello.bytes.data(), sizeof theirs);
  if (theirs.magic != kMagic || theirs.inbox_bytes != sizeof(Inbox))
    return base::fail(base::Code::malformed, "the peer runs another version of NIC local");
  LACUNA_TRY(theirs.limits.read());
  if (theirs.path != static_cast<std::uint64_t>(path)) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("this end asked for path {}, the peer for another; both must name the same", path_name(path)));
  }
  return theirs;
}

// Whether the kernel lets us copy into the peer (Yama and other users' processes are reasons why not); a refusal is
// said aloud.
Result<void> probe(std::int64_t process, const Introduction& peer) {
  Result<void> allowed = probe_kernel(process, peer.cookie_addr, peer.cookie);
  if (!allowed)
    base::log(base::Level::warn, fmt::format("NIC local does without path kernel to process {}: {}", process, allowed.error().text()));
  return allowed;
}

}  // namespace

Result<Hello> Context::introduction(Path path, const SharedMemory& inbox) const {
  Introduction mine;
  mine.arena_bytes = arena_.memory().size();
  mine.cookie_addr = reinterpret_cast<std::uint64_t>(&cookie_);
  mine.cookie = cookie_;
  mine.limits = LimitsOnWire::of(limits_);
  mine.path = static_cast<std::uint64_t>(path);
  static_assert(std::has_unique_object_representations_v<Introduction>);
  Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  hello.files.push_back(LACUNA_TRY(arena_.memory().share()));
  hello.files.push_back(LACUNA_TRY(keys_.view().table.share()));
  hello.files.push_back(LACUNA_TRY(keys_.view().translations.share()));
  hello.files.push_back(LACUNA_TRY(inbox.share()));
  return hello;
}

Result<std::shared_ptr<PeerMemory>> Context::meet(Hello& hello, std::uint64_t arena_bytes) {
  auto peer = std::make_shared<PeerMemory>();
  peer->process = hello.process;
  peer->arena = LACUNA_TRY(SharedMemory::map(std::move(hello.files[0]), arena_bytes, SharedMemory::Access::write));
  const std::uint64_t identity = LACUNA_TRY(peer->arena.identity());
  if (auto known = peers_[identity].lock()) return known;
  peer->key_table = LACUNA_TRY(SharedMemory::map(std::move(hello.files[1]), kKeyTableBytes, SharedMemory::Access::read));
  peer->translations = LACUNA_TRY(SharedMemory::map(std::move(hello.files[2]), kTranslationBytes, SharedMemory::Access::read));
  peer->pidfd = base::Fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(peer->process), 0)));
  if (!peer->pidfd) return std::unexpected(base::system_error(fmt::format("pidfd_open of peer process {}", peer->process), errno));
  peers_[identity] = peer;
  return peer;
}

Result<std::unique_ptr<nic::QueuePair>> Context::connect(Bootstrap& bootstrap, nic::CompletionQueue& queue,
                                                         const QueuePairOptions& options) {
  const PathInfo* path = limits_.path(options.path);
  if (path == nullptr) return base::fail(base::Code::unsupported, fmt::format("NIC local has no path {}", path_name(options.path)));
  LACUNA_TRY(check_depths(options, limits_, "local"));
  auto& own = static_cast<CompletionQueue&>(queue);
  Wiring wiring;
  wiring.mine = LACUNA_TRY(SharedMemory::create("lacuna inbox", sizeof(Inbox)));
  Hello theirs = LACUNA_TRY(bootstrap.exchange(LACUNA_TRY(introduction(options.path, wiring.mine)), kTimeout));

  const auto attempt = [&]() -> Result<Introduction> {
    if (!path->available) return base::fail(base::Code::unsupported, fmt::format("path {}: {}", path_name(options.path), path->note));
    const Introduction peer = LACUNA_TRY(introduction_of(theirs, options.path));
    wiring.theirs = LACUNA_TRY(SharedMemory::map(std::move(theirs.files[3]), sizeof(Inbox), SharedMemory::Access::write));
    wiring.peer = LACUNA_TRY(meet(theirs, peer.arena_bytes));
    if (options.path == Path::kernel) LACUNA_TRY(probe(theirs.process, peer));
    return peer;
  };
  const Result<Introduction> peer = attempt();

  LACUNA_TRY(agree(bootstrap, peer ? Result<void>() : std::unexpected(peer.error()), options.path, kTimeout));
  const auto make = options.path == Path::slots ? &make_slots : &make_direct;
  return make(*this, own, options, common(limits_, LACUNA_TRY(peer->limits.read())), std::move(wiring));
}

}  // namespace lacuna::nic::local
