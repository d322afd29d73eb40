#include "lacuna/nic/local/card.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "lacuna/nic/local/movers.hpp"

namespace lacuna::nic::local {
namespace {

constexpr std::int64_t kLookAfter = 5'000'000;  // ns between two looks at whether the peer lives: a system call each

// A file of another process, by a name that ends with that process. The process may have died, and its number be
// another's now; then the file is another one.
std::string path_of(std::int64_t process, const CardText::File& file) { return fmt::format("/proc/{}/fd/{}", process, file.number); }

Result<base::Fd> file_of(std::int64_t process, const CardText::File& wanted, int flags) {
  const std::string path = path_of(process, wanted);
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
  Attached(Context& context, PeerMemory peer, const CardText& card, bool copies)
      : context_(context), peer_(std::move(peer)), alive_(path_of(card.process, card.arena)), inode_(card.arena.inode), copies_(copies) {}

  [[nodiscard]] std::uint32_t number() const override { return 0; }
  [[nodiscard]] Path path() const override { return Path::mapped; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const SendRequest> /*chain*/) override { return without_queues(); }
  Result<void> post_recv(const RecvRequest& /*request*/) override { return without_queues(); }
  [[nodiscard]] const base::Error* fault() const override {
    if (!gone_ && base::now_ns() >= next_look_) {
      next_look_ = base::now_ns() + kLookAfter;
      // It takes no open file, of which a process may have few and peers many.
      struct stat info{};
      if (::stat(alive_.c_str(), &info) != 0 || info.st_ino != inode_)
        gone_ = base::Error{base::Code::peer_lost, fmt::format("the peer (process {}) has ended, or died", peer_.process)};
    }
    return gone_ ? &*gone_ : nullptr;
  }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return reach(peer_, addr, rkey, bytes);
  }
  void keep(const SharedBuffer& memory) override { context_.keep_to_the_end(memory); }
  [[nodiscard]] bool copies() const override { return copies_; }
  Result<void> copy(bool to_peer, std::span<const Sge> ours, std::span<const Sge> theirs) override {
    if (!copies_) return nic::QueuePair::copy(to_peer, ours, theirs);
    return copy_past_queues(peer_, to_peer, ours, theirs, copied_);
  }

 private:
  static Result<void> without_queues() { return base::fail(base::Code::unsupported, "what is attached by a card has no queues"); }
  Context& context_;
  PeerMemory peer_;
  std::string alive_;  // as long as the peer lives, this is its arena
  std::uint64_t inode_;
  bool copies_;
  CopyLists copied_;
  Limits limits_;
  mutable std::optional<base::Error> gone_;
  mutable std::int64_t next_look_ = 0;
};

// Mapped, without an open file.
Result<SharedMemory> mapped(const CardText& card, const CardText::File& file, std::size_t bytes, SharedMemory::Access access) {
  const int flags = access == SharedMemory::Access::write ? O_RDWR : O_RDONLY;
  SharedMemory memory = LACUNA_TRY(SharedMemory::map(LACUNA_TRY(file_of(card.process, file, flags)), bytes, access));
  memory.close_file();
  return memory;
}

Result<std::unique_ptr<nic::QueuePair>> attach(Context& context, const CardText& card) {
  PeerMemory peer;
  peer.process = card.process;
  peer.arena = LACUNA_TRY(mapped(card, card.arena, card.arena.bytes, SharedMemory::Access::write));
  peer.key_table = LACUNA_TRY(mapped(card, card.key_table, kKeyTableBytes, SharedMemory::Access::read));
  const bool copies = probe_kernel(card.process, card.cookie_addr, card.cookie).has_value();
  return std::make_unique<Attached>(context, std::move(peer), card, copies);
}

}  // namespace

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
  // One file is open for a moment. Where the program has opened all that it may, one is set aside for that.
  spare_ = base::Fd();
  auto attached = local::attach(*this, text);
  spare_ = base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return attached;
}

}  // namespace lacuna::nic::local
