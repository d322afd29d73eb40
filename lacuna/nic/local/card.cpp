#include "lacuna/nic/local/card.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "lacuna/nic/local/movers.hpp"

namespace lacuna::nic::local {
namespace {

constexpr std::int64_t kLookAfter = 5'000'000;  // ns between two looks at whether the peer lives: a system call each

// A file of another process. The process may have died, and its number be another's now; then the file is another one.
Result<base::Fd> file_of(std::int64_t process, const CardText::File& wanted, int flags) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, wanted.number);
  base::Fd file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file) return std::unexpected(base::system_error(fmt::format("opening {}, which process {} shares", path, process), errno));
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return std::unexpected(base::system_error("fstat", errno));
  if (info.st_ino != wanted.inode)
    return base::fail(base::Code::unsupported,
                      fmt::format("process {} is not the one that says what it shares, or not on this machine", process));
  return file;
}

Result<CardText::File> named(const SharedMemory& memory) {
  return CardText::File{.inode = LACUNA_TRY(memory.identity()), .bytes = memory.size(), .number = memory.number()};
}

// A queue pair without queues: the peer's memory, as this process's CPU and the kernel reach it.
class Attached final : public nic::QueuePair {
 public:
  Attached(Context& context, PeerMemory peer, bool copies) : context_(context), peer_(std::move(peer)), copies_(copies) {}

  [[nodiscard]] std::uint32_t number() const override { return 0; }
  [[nodiscard]] Path path() const override { return Path::mapped; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const SendRequest> /*chain*/) override { return without_queues(); }
  Result<void> post_recv(const RecvRequest& /*request*/) override { return without_queues(); }
  [[nodiscard]] const base::Error* fault() const override {
    if (!gone_ && base::now_ns() >= next_look_) {
      next_look_ = base::now_ns() + kLookAfter;
      pollfd dead{peer_.pidfd.get(), POLLIN, 0};
      if (::poll(&dead, 1, 0) > 0)
        gone_ = base::Error{base::Code::peer_lost, fmt::format("the peer (process {}) has ended, or died", peer_.process)};
    }
    return gone_ ? &*gone_ : nullptr;
  }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return reach(peer_, addr, rkey, bytes);
  }
  void keep(SharedBuffer memory) override { context_.keep_to_the_end(std::move(memory)); }
  [[nodiscard]] bool copies() const override { return copies_; }
  Result<void> copy(bool to_peer, std::span<const Sge> ours, std::span<const Sge> theirs) override {
    if (!copies_) return nic::QueuePair::copy(to_peer, ours, theirs);
    return copy_past_queues(peer_, to_peer, ours, theirs, copied_);
  }

 private:
  static Result<void> without_queues() { return base::fail(base::Code::unsupported, "what is attached by a card has no queues"); }
  Context& context_;
  PeerMemory peer_;
  bool copies_;
  CopyLists copied_;
  Limits limits_;
  mutable std::optional<base::Error> gone_;
  mutable std::int64_t next_look_ = 0;
};

}  // namespace

Result<std::unique_ptr<nic::QueuePair>> attach(Context& context, const CardText& card) {
  PeerMemory peer;
  peer.process = card.process;
  peer.pidfd = base::Fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(card.process), 0)));
  if (!peer.pidfd) return std::unexpected(base::system_error(fmt::format("pidfd_open of peer process {}", card.process), errno));
  peer.arena =
      LACUNA_TRY(SharedMemory::map(LACUNA_TRY(file_of(card.process, card.arena, O_RDWR)), card.arena.bytes, SharedMemory::Access::write));
  peer.key_table = LACUNA_TRY(
      SharedMemory::map(LACUNA_TRY(file_of(card.process, card.key_table, O_RDONLY)), kKeyTableBytes, SharedMemory::Access::read));
  // What is mapped needs no open file: there may be as many peers as files that a process may open.
  peer.arena.close_file();
  peer.key_table.close_file();
  const bool copies = probe_kernel(card.process, card.cookie_addr, card.cookie).has_value();
  return std::make_unique<Attached>(context, std::move(peer), copies);
}

Result<Card> Context::card() const {
  CardText text;
  text.process = getpid();
  text.arena = LACUNA_TRY(named(arena_.memory()));
  text.key_table = LACUNA_TRY(named(keys_.view().table));
  text.cookie_addr = reinterpret_cast<std::uint64_t>(&cookie_);
  text.cookie = cookie_;
  Card card;
  std::memcpy(card.bytes.data(), &text, sizeof text);
  return card;
}

Result<std::unique_ptr<nic::QueuePair>> Context::attach(const Card& card) {
  CardText text;
  std::memcpy(&text, card.bytes.data(), sizeof text);
  if (text.magic != CardText::kMagic)
    return base::fail(base::Code::malformed, "this is no card of a process with this version of NIC local");
  if (text.process <= 0 || text.process > INT32_MAX || text.arena.bytes == 0)
    return base::fail(base::Code::malformed, "the peer's card is invalid");
  return local::attach(*this, text);
}

}  // namespace lacuna::nic::local
