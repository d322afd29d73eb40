// What has gaps, to and from ranks of other nodes: packed in chunks, sent by the host while the next are packed,
// received by the host while those before are unpacked. What hand packing does one after another (pack, send, unpack)
// so happens at once, and a chunk is still in the caches when it is sent.
//
//   sender                              host                                     receiver
//   descriptor in the message's place ▶ the program's communicator ────────────▶ matched as the message would have been
//   pack, send; pack, send; ...       ▶ one communicator of ours: ranks of the ▶ receives posted ahead; unpack each as
//                                       world, as tag one of the message's own   it comes
//                                       (tags.hpp)
//
// One private duplicate of MPI_COMM_WORLD serves all communicators of the program: descriptors are matched in theirs,
// and chunks go from rank to rank of the world, so nothing has to be duplicated when the program makes one, and spawned
// or connected processes, which are no ranks of it, never see a chunk.
//
// Progress. A sender whose receiver takes nothing for a while packs all that is left, hands it to the host, and goes
// on, as with a short message: so a receiver that is in a call of the host's alone stops no sender. What is so packed
// has a bound; beyond it messages are the host's from the start.
//
// Where a device reaches the other rank, it takes the chunks' place (rdma.hpp).
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "lacuna/mpi/host/bounce.hpp"
#include "lacuna/mpi/inter_node/inter_node.hpp"
#include "lacuna/mpi/inter_node/rdma.hpp"
#include "lacuna/mpi/inter_node/tags.hpp"

namespace lacuna::mpi {

class InterNodeTransport;

/// A chunk that the host moves. The memory is empty where it goes straight into its place.
struct Chunk {
  Request request{};
  Bounce memory;
  std::int64_t at = 0, bytes = 0;
  std::int64_t wanted = 0;  ///< of one that arrives: the bytes that its receive has room for
};

/// The chunks of a message that leaves.
class OutgoingChunks final : public OutgoingMessage {
 public:
  /// `behind`: it gets memory for all its chunks, else for one at least. Throws std::bad_alloc.
  OutgoingChunks(InterNodeTransport& transport, int to, std::int64_t bytes, std::int64_t chunk, bool behind);
  /// Before anything is packed.
  void begin(int tag) { tag_ = tag; }
  void pack(const Layout& layout, const std::byte* base, bool all) override;
  void reap() override;
  [[nodiscard]] bool packed() const override { return packed_ == bytes_; }
  [[nodiscard]] bool gone() const override { return packed() && chunks_.empty(); }
  [[nodiscard]] bool stands() const override;
  [[nodiscard]] int error() const override { return error_; }

 private:
  void fail(int error, const char* what);
  InterNodeTransport& transport_;
  int to_, tag_ = ChunkTags::kNone;
  std::int64_t bytes_, chunk_, packed_ = 0;
  std::list<Chunk> chunks_, free_;  // with the host; to be packed, the one that the caches know best first
  std::int64_t looked_ = 0, waited_ = 0;
  int error_ = kSuccess;
};

/// The chunks of a message that arrives.
class IncomingChunks final : public IncomingMessage {
 public:
  IncomingChunks(InterNodeTransport& transport, int from, int tag, std::int64_t chunk, std::int64_t bytes, Destination into)
      : transport_(transport), from_(from), tag_(tag), chunk_(chunk), bytes_(bytes), into_(std::move(into)) {
    ask();
  }
  ~IncomingChunks() override { take_back(); }
  IncomingChunks(const IncomingChunks&) = delete;
  IncomingChunks& operator=(const IncomingChunks&) = delete;
  bool move() override;
  [[nodiscard]] int error() const override { return error_; }

 private:
  void ask();
  bool too_long_is_here(std::int64_t bytes);
  void take_back();
  InterNodeTransport& transport_;
  int from_, tag_;
  std::int64_t chunk_, bytes_, asked_ = 0, here_ = 0;
  Destination into_;
  std::deque<Chunk> chunks_;
  std::int64_t in_vain_since_ = 0;
  int error_ = kSuccess;
};

class InterNodeTransport {
 public:
  /// Of so many ranks of the world.
  InterNodeTransport(Bounces& bounces, std::size_t ranks)
      : bounces_(bounces), ranks_(ranks), tags_(comm_, ranks), rdma_(std::make_unique<Rdma>(ranks)) {}
  /// All ranks, in MPI_Init; throws nothing. False: the host has no communicator for us.
  bool connect(int own_rank, const std::vector<RankPlace>& places);
  /// All ranks, before MPI_Finalize, with nothing that arrives: waits for what was left behind.
  void end();
  InterNodeTransport(const InterNodeTransport&) = delete;
  InterNodeTransport& operator=(const InterNodeTransport&) = delete;
  ~InterNodeTransport() {
    while (left_ != nullptr) left_ = std::move(left_->next);  // one by one: they may be many
  }

  /// A message to a rank of the world, and what its receiver has to be told. Null: too much is on the way already.
  /// `behind`: whether it will be packed whole before anybody asks for it; to Behind::always the bound is none. Throws
  /// std::bad_alloc; then nothing has begun.
  std::unique_ptr<OutgoingMessage> begin_outgoing(int to, std::int64_t bytes, std::int64_t chunk, protocol::Behind behind,
                                                  Descriptor::InterNode& head);
  /// Errors: those of Rdma::begin_incoming(); malformed (no rank has sent that).
  base::Result<std::unique_ptr<IncomingMessage>> begin_incoming(int from, const Descriptor::InterNode& head, std::int64_t bytes,
                                                                Destination into);
  /// What is packed, and not gone; after an error for good, since nobody knows whether the host still reads it.
  void leave(std::unique_ptr<OutgoingMessage> outgoing) {
    outgoing->next = std::move(left_);
    left_ = std::move(outgoing);
  }
  /// Looks after what was left.
  void progress();

 private:
  friend class OutgoingChunks;
  friend class IncomingChunks;
  void meet(bool drops);
  bool drop();
  Bounces& bounces_;
  Comm comm_{};
  std::atomic<std::int64_t> under_way_ = 0;  ///< bytes that are packed, by any thread
  std::size_t ranks_;
  ChunkTags tags_;
  std::unique_ptr<OutgoingMessage> left_;  ///< the first
  Rdma::Unsent unsent_;
  std::unique_ptr<Rdma> rdma_;  ///< null: no device reaches any of them
};

}  // namespace lacuna::mpi
