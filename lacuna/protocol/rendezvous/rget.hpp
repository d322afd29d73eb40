// A rendezvous by RDMA READ (RGET in Open MPI and UCX): a message lies packed in registered memory of its sender until
// the receiver's device has read it from there. It hides the device. Another library announces the message and matches
// it (lacuna/mpi/inter_node/transport.hpp).
//
//   sender                                                            receiver
//   offer(): memory ─────────────── ticket, by whatever means ──────▶ accept()
//   pack(): a part, and its word ── WRITE of 8 bytes ───────────────▶ its board: so many parts are there
//           the next, and its word                          ◀──────── READ of what is there; unpacked meanwhile
//   the memory is free again     ◀─ WRITE of 8 bytes ──────────────── its board: taken
//
// Progress. What is packed is read by the receiver's device alone, whatever the sender's CPU does. What waits so has a
// bound, beyond which no message is offered.
//
// A peer's words, and its tickets, are checked: a message has as many parts as its bytes say, whatever its words say.
#pragma once

#include <array>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::protocol {

using base::Result;

class Rget {
 public:
  /// What a receiver has to be given.
  struct Ticket {
    std::uint64_t addr = 0;
    std::uint32_t rkey = 0;
    std::uint32_t number = 0;
  };
  /// Bytes that are packed, told and read at once: so many that a word and a round trip take little time beside them on
  /// 100 Gb/s (5 us), and so few that they are still in the caches when they are read, and unpacked. Not measured on
  /// hardware.
  static constexpr std::int64_t kPart = 64 << 10;
  static constexpr std::int64_t kRoom = 256 << 20;  ///< of messages that wait, and of memory that is kept for them

  class Out;
  class In;

  /// For so many peers. Errors: limit (more than the context's completion queues have room for), unsupported (a path
  /// that needs the peer's CPU), others of the context's.
  static Result<std::unique_ptr<Rget>> create(std::unique_ptr<nic::Context> context, nic::Path path, int peers);
  ~Rget();
  Rget(const Rget&) = delete;
  Rget& operator=(const Rget&) = delete;

  /// Both ends of a pair at once, each with its number for the other. Both are connected after a word has gone each
  /// way; else none is. Errors: why not.
  Result<void> connect(int peer, nic::Bootstrap& bootstrap, std::int64_t timeout_ns);
  /// Whether it is connected, without an error since.
  [[nodiscard]] bool reaches(int peer) const;

  /// Memory for a message that will be packed. Errors: limit (too much waits), out_of_memory, peer_lost.
  Result<std::unique_ptr<Out>> offer(int peer, std::int64_t bytes);
  /// Receives what was offered: `capacity` bytes of it at most. Errors: malformed (an invalid ticket), peer_lost.
  Result<std::unique_ptr<In>> accept(int peer, const Ticket& ticket, std::int64_t bytes, layout::Layout layout, std::byte* base,
                                     std::int64_t capacity);
  /// Looks at what has completed, and at what was taken.
  void progress();
  /// Messages that wait to be taken.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  static constexpr std::uint32_t kSlots = 64;  // messages under way to a peer
  static constexpr std::size_t kReads = 8;     // of a message, on the way while one is unpacked
  static constexpr int kMostDepth = 256, kLeastDepth = 32;

  /// Written by the peer.
  struct Board {
    // Of the peer's message with the slot: its number, and how many parts are there
    std::array<std::uint64_t, kSlots> packed;
    std::array<std::uint64_t, kSlots> taken;  // of ours: the number of the last that was taken
    std::uint64_t hello;
  };
  struct Peer {
    std::unique_ptr<nic::QueuePair> qp;
    std::uint64_t board_addr = 0;
    std::uint32_t board_rkey = 0;
    int outstanding = 0;
    std::uint32_t last = 0;
    std::array<bool, kSlots> used{};
    std::optional<base::Error> lost;
  };
  struct Memory {
    nic::RegisteredBuffer buffer;
    std::size_t size_class = 0;
  };
  struct Waiting {
    int peer = 0;
    std::uint32_t number = 0;
    Memory memory;
  };
  /// Where a READ puts a part.
  struct ReadBuffer {
    std::byte* data = nullptr;
    nic::Sge sge{};
    enum class State { free, reading, here, failed } state = State::free;
    bool wanted = false;
    int peer = 0;  ///< from which it is read
  };

  Rget(std::unique_ptr<nic::Context> context, nic::Path path, std::size_t peers, int depth);
  Result<void> greet(Peer& peer, const Board& board, std::int64_t timeout_ns);
  [[nodiscard]] Board& board(int peer) const;
  Peer& peer(int number) { return peers_[static_cast<std::size_t>(number)]; }
  void reap();
  void lose(Peer& peer, base::Error error);
  void close(int peer);
  /// Writes a word to where it is in the peer's board. False: there is no room in the queue, or the peer is lost; with
  /// `waits`, only the latter.
  bool tell(int to, std::uint64_t offset, std::uint64_t word, bool waits);
  bool read(int from, std::size_t buffer, std::uint64_t addr, std::uint32_t rkey, std::int64_t bytes);
  Result<Memory> take(std::int64_t bytes);
  void give_back(Memory memory) noexcept;
  Result<std::size_t> take_buffer();
  void release(std::size_t buffer);

  std::unique_ptr<nic::Context> context_;
  nic::Path path_;
  int depth_;
  std::unique_ptr<nic::CompletionQueue> queue_;
  nic::RegisteredBuffer boards_, words_;
  std::vector<std::vector<Memory>> kept_;  // by class of size
  std::int64_t held_ = 0;                  // bytes of all Memory
  std::deque<nic::RegisteredBuffer> slabs_;
  std::vector<ReadBuffer> buffers_;
  std::list<Waiting> waiting_;
  std::vector<Peer> peers_;  // first of all to go
};

/// A message that leaves. One that ends before it was packed was never offered.
class Rget::Out {
 public:
  Out(Rget& rget, int peer, std::uint32_t number, std::int64_t bytes) : rget_(rget), bytes_(bytes), own_(1) {
    own_.front().peer = peer;
    own_.front().number = number;
  }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out();
  [[nodiscard]] Ticket ticket() const {
    const Waiting& own = own_.front();
    return {own.memory.buffer.region.addr(), own.memory.buffer.region.rkey(), own.number};
  }
  /// All of it. Errors: peer_lost, transfer.
  Result<void> pack(const layout::Layout& layout, const std::byte* base);

 private:
  friend class Rget;
  Rget& rget_;
  std::int64_t bytes_;
  std::list<Waiting> own_;  // one, which goes to the others that wait
  bool used_ = false, offered_ = false;
};

/// A message that arrives.
class Rget::In {
 public:
  In(Rget& rget, int peer, const Ticket& ticket, std::int64_t bytes, layout::Layout layout, std::byte* base, std::int64_t capacity)
      : rget_(rget),
        peer_(peer),
        ticket_(ticket),
        bytes_(bytes),
        wanted_(std::min(bytes, capacity)),
        layout_(std::move(layout)),
        base_(base) {}
  In(const In&) = delete;
  In& operator=(const In&) = delete;
  ~In();
  /// Reads and unpacks what is there; whether that was all. Errors: peer_lost, transfer; malformed (words that no
  /// sender writes).
  Result<bool> step();

 private:
  Result<void> ask();
  Rget& rget_;
  int peer_;
  Ticket ticket_;
  std::int64_t bytes_, wanted_, asked_ = 0, here_ = 0;
  layout::Layout layout_;
  std::byte* base_;
  [[nodiscard]] std::size_t first() const { return buffers_[first_ % kReads]; }
  std::array<std::size_t, kReads> buffers_{};  // in turn
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace lacuna::protocol
