// How two queue pairs find one another: each side sends its four files and what it can do, maps and probes the other's, and says whether
// that worked, so that both ends fail together or not at all.
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
constexpr std::int64_t kTimeout = 10'000'000'000;       // ns for the peer to do its part

struct Introduction {
  std::uint64_t magic = kMagic;
  std::uint64_t inbox_bytes = sizeof(Inbox);
  std::uint64_t arena_bytes = 0;
  std::uint64_t cookie_addr = 0;
  std::uint64_t cookie = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t indirect_stride = 0;
  std::int32_t max_sge = 0;
  std::int32_t max_sge_rd = 0;
  std::int32_t max_inline = 0;
  std::int32_t max_send_wr = 0;
  std::int32_t max_recv_wr = 0;
  std::int32_t indirect_keys = 0;
  std::int32_t indirect_entries = 0;
  std::int32_t indirect_inline = 0;
  std::int32_t indirect_strided = 0;
  std::uint32_t path = 0;
};

Result<Introduction> introduction_of(const Hello& hello, Path path) {
  Introduction theirs;
  if (hello.bytes.size() != sizeof theirs || hello.files.size() != 4)
    return base::fail(base::Code::malformed, "the peer's introduction is not one of NIC local");
  std::memcpy(&theirs, hello.bytes.data(), sizeof theirs);
  if (theirs.magic != kMagic || theirs.inbox_bytes != sizeof(Inbox))
    return base::fail(base::Code::malformed, "the peer runs another version of NIC local");
  if (theirs.max_sge < 1 || theirs.max_sge_rd < 1 || theirs.max_inline < 0 || theirs.max_send_wr < 1 || theirs.max_recv_wr < 1 ||
      theirs.max_message_bytes < 1 || theirs.indirect_keys < 0 || theirs.indirect_entries < 0 || theirs.indirect_inline < 0 ||
      theirs.indirect_strided < 0 || theirs.indirect_stride < 0)
    return base::fail(base::Code::malformed, "the peer's limits are not positive");
  if (theirs.path != static_cast<std::uint32_t>(path)) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("this end asked for path {}, the peer for another; both must name the same", path_name(path)));
  }
  return theirs;
}

// Whether the kernel lets us copy into the peer (Yama and other users' processes are reasons why not); a refusal is said aloud.
Result<void> probe(std::int64_t process, const Introduction& peer) {
  Result<void> allowed = probe_kernel(process, peer.cookie_addr, peer.cookie);
  if (!allowed)
    base::log(base::Level::warn, fmt::format("NIC local does without path kernel to process {}: {}", process, allowed.error().text()));
  return allowed;
}

Limits limits_of(const Introduction& peer) {
  Limits limits;
  limits.max_sge = peer.max_sge;
  limits.max_sge_rd = peer.max_sge_rd;
  limits.max_inline = peer.max_inline;
  limits.max_send_wr = peer.max_send_wr;
  limits.max_recv_wr = peer.max_recv_wr;
  limits.max_message_bytes = peer.max_message_bytes;
  limits.indirect = {peer.indirect_keys, peer.indirect_entries, peer.indirect_inline, peer.indirect_strided, peer.indirect_stride};
  return limits;
}

}  // namespace

Result<Hello> Context::introduction(Path path, const SharedMemory& inbox) const {
  Introduction mine;
  mine.arena_bytes = arena_.memory().size();
  mine.cookie_addr = reinterpret_cast<std::uint64_t>(&cookie_);
  mine.cookie = cookie_;
  mine.max_message_bytes = limits_.max_message_bytes;
  mine.max_sge = limits_.max_sge;
  mine.max_sge_rd = limits_.max_sge_rd;
  mine.max_inline = limits_.max_inline;
  mine.indirect_keys = limits_.indirect.keys;
  mine.indirect_entries = limits_.indirect.entries;
  mine.indirect_inline = limits_.indirect.inline_entries;
  mine.indirect_strided = limits_.indirect.strided_entries;
  mine.indirect_stride = limits_.indirect.stride;
  mine.max_send_wr = limits_.max_send_wr;
  mine.max_recv_wr = limits_.max_recv_wr;
  mine.path = static_cast<std::uint32_t>(path);
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

  // The verdict: empty if this end is content, else why not.
  Hello verdict;
  if (!peer) {
    const std::string reason = peer.error().text();
    verdict.bytes.assign(reinterpret_cast<const std::byte*>(reason.data()),
                         reinterpret_cast<const std::byte*>(reason.data() + reason.size()));
  }
  const Result<Hello> answer = bootstrap.exchange(verdict, kTimeout);
  if (!peer) return std::unexpected(peer.error());
  if (!answer) return std::unexpected(answer.error());
  if (!answer->bytes.empty()) {
    const std::string_view reason(reinterpret_cast<const char*>(answer->bytes.data()), std::min<std::size_t>(answer->bytes.size(), 500));
    return base::fail(base::Code::unsupported, fmt::format("the peer refuses path {}: {}", path_name(options.path), reason));
  }

  const auto make = options.path == Path::slots ? &make_slots : &make_direct;
  return make(*this, own, options, common(limits_, limits_of(*peer)), std::move(wiring));
}

}  // namespace lacuna::nic::local
