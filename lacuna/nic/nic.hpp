// nic: the device seam, shaped like verbs because that is what the hardware is. It hides which NIC.
//
//   Context ── owns ──▶ regions (keys), completion queues, queue pairs        one Context for each (simulated) process
//      │                                                      │
//      └─ the CPU's copies, the clock, waiting                └─ connected through a Bootstrap to one peer's queue pair
//
// memory.hpp has buffers, regions and indirect keys; devices.hpp what is known of RDMA devices; world.hpp simulated
// processes.
//
// Everything that a method or protocol does to time goes through its Context: copies, registration, waiting and the
// clock. On real NICs these are the plain calls; a simulated NIC charges time for them. Nothing is process-global. A
// Context and what it owns belong to one thread at a time; different Contexts are independent, also within one process.
// Destroy in the order opposite to creation: queue pairs before their completion queue, regions before their memory,
// everything before its Context.
//
// Data paths. A NIC may reach a peer's memory in several ways, each best for something; a queue pair uses one of them,
// named when it is created. Layers above measure them; none is a default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/memory.hpp"

namespace lacuna::nic {

// --- vocabulary -----------------------------------------------------------------------------------------------------

/// How a queue pair moves its bytes.
enum class Path {
  mapped,  ///< loads and stores by the initiator, where the target's memory is shared (Context::allocate)
  slots,   ///< chunks through shared slots; the target's CPU takes them out in its poll
  kernel,  ///< one system call copies between the two address spaces
  wire,    ///< the device's DMA
};
[[nodiscard]] std::string_view path_name(Path path);
[[nodiscard]] std::optional<Path> path_from_name(std::string_view name);

/// ibv_wr_opcode and ibv_wc_opcode in one. recv and recv_imm are completions of the receive queue.
enum class Opcode : std::uint8_t { send, write, write_imm, read, bind, invalidate, recv, recv_imm };
[[nodiscard]] std::string_view opcode_name(Opcode opcode);

/// ibv_wc_status, with verbs' meaning.
enum class Status : std::uint8_t {
  success,
  loc_len_err,        ///< a receive too short for what arrived
  loc_qp_op_err,      ///< a request that this queue pair cannot execute
  loc_prot_err,       ///< a local sge outside its region, with a wrong key, or without the right
  wr_flush_err,       ///< the queue pair was in error before this request ran
  mw_bind_err,        ///< bind or invalidate of a key that is not an indirect key of this Context
  rem_inv_req_err,    ///< the responder could not take the request (its receive was too short)
  rem_access_err,     ///< remote address outside its region, a wrong rkey, or without the right
  rem_op_err,         ///< the responder failed while it executed the request
  retry_exc_err,      ///< the peer does not answer: it died or closed
  rnr_retry_exc_err,  ///< the peer answers that it has posted no receive
  general_err,        ///< anything else; the queue pair's fault has the device's words
};
[[nodiscard]] std::string_view status_name(Status status);

/// One entry of a strided binding (mlx5dv_mr_interleaved): repetition i covers `bytes` at addr + i * stride.
struct Strided {
  std::uint64_t addr;
  std::uint32_t bytes;
  std::uint32_t stride;  ///< from the start of one repetition to the next; at least `bytes`
  std::uint32_t lkey;
};

/// What a bind request makes an indirect key stand for: the pieces of `list` one after the other; or `repeat` rounds,
/// each of which takes one repetition of every entry of `strided`. The entries' keys are those of regions, whose rights
/// count too, at every access.
struct Binding {
  std::uint32_t key = 0;  ///< IndirectKey::lkey()
  Rights rights;
  std::span<const Sge> list;
  std::uint32_t repeat = 0;  ///< 0: a list
  std::span<const Strided> strided;
};

/// ibv_send_wr. The lists are copied when posted.
struct SendRequest {
  std::uint64_t wr_id = 0;
  Opcode opcode = Opcode::send;
  std::span<const Sge> sg_list;   ///< source; of a read, destination
  std::uint64_t remote_addr = 0;  ///< write, write_imm, read
  std::uint32_t rkey = 0;         ///< write, write_imm, read; of invalidate, the key
  bool signaled = true;           ///< an unsignaled request completes in silence unless it fails
  bool fence = false;             ///< waits until all reads before it are done (IBV_SEND_FENCE); a bind always does
  /// The bytes are copied at once, by no key; at most Limits::max_inline of them (IBV_SEND_INLINE)
  bool inline_data = false;
  std::uint32_t imm_data = 0;        ///< write_imm
  const Binding* binding = nullptr;  ///< bind
};

/// ibv_recv_wr.
struct RecvRequest {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list;
};

/// ibv_wc. After the first error of a queue pair all its later requests complete with wr_flush_err.
struct Completion {
  std::uint64_t wr_id = 0;
  Status status = Status::success;
  Opcode opcode = Opcode::send;
  std::uint64_t byte_len = 0;  ///< recv: bytes received; recv_imm: bytes written
  std::uint32_t qp_num = 0;
  std::uint32_t imm_data = 0;  ///< recv_imm
};

/// Whose time the moving of bytes takes.
enum class Mover {
  initiator,  ///< the CPU of whoever posted the request
  both,       ///< the initiator's CPU hands over units, the target's takes them in
  device,     ///< neither: engines on both sides and the wire between them, at once
};

struct PathInfo {
  Path path;
  bool available;
  bool passive_target;      ///< can the target's memory be reached while its CPU is elsewhere?
  bool shared_only;         ///< does the target's memory have to come from Context::allocate?
  Mover mover;              ///< who moves the bytes
  std::int64_t unit_bytes;  ///< what it moves at once: a device's MTU, a slot; 0: a request whole
  std::string note;         ///< why it is not available, or what it needs
};

/// What indirect keys can do; all 0 on a NIC that has none.
struct IndirectLimits {
  int keys = 0;            ///< that a Context may have, as far as it has room for their entries
  int entries = 0;         ///< of a list
  int inline_entries = 0;  ///< of a list that travels in the bind request itself; longer ones are fetched
  int strided_entries = 0;
  /// The largest stride, and the largest piece, of a strided entry, in bytes: 16 bits on mlx5
  std::int64_t stride = 0;
  std::string note;  ///< with the device's name: why there are none, or how much they were tried

  /// For whoever asks for one where there is none.
  [[nodiscard]] std::string refusal() const;
};

struct Limits {
  int max_sge = 0;      ///< entries of one sg_list, either queue
  int max_sge_rd = 0;   ///< of a read's
  int max_inline = 0;   ///< bytes of a request with inline data
  int max_send_wr = 0;  ///< requests outstanding in a send queue
  int max_recv_wr = 0;
  int max_cqe = 0;
  std::int64_t max_message_bytes = 0;  ///< of one work request
  int remote_segments = 1;             ///< contiguous pieces that one write may reach at the target
  bool shared_clock = false;           ///< is now() comparable between the two ends?
  int windows = 0;                     ///< memory windows that a Context may have
  int sharing = 1;                     ///< processes that share this device, as far as that is known
  /// A device in software, at either end: what it takes says nothing about hardware
  bool emulated = false;
  /// Does a registration hold the pages that it finds, so that what is mapped at their addresses later is reached by no
  /// key of it? Else keys are of addresses.
  bool pins = false;
  IndirectLimits indirect;
  std::vector<PathInfo> paths;

  [[nodiscard]] const PathInfo* path(Path which) const;
};

// --- objects --------------------------------------------------------------------------------------------------------

/// What two ends tell one another before they are connected: bytes, and on one machine file descriptors.
struct Hello {
  std::vector<std::byte> bytes;
  std::vector<base::Fd> files;
  std::int64_t process = 0;  ///< of the sender, as the operating system vouches for it (0 where it cannot)
};

/// The out-of-band channel to one peer. Both ends call exchange() in the same order.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  /// Sends `mine`, returns the peer's. Errors: peer_lost, timeout, malformed, limit.
  virtual Result<Hello> exchange(const Hello& mine, std::int64_t timeout_ns) = 0;
};

/// Completions of one or several queue pairs (ibv_cq). Its creator makes room for what may be outstanding: a completion
/// that finds it full is lost, and with it the queue and every queue pair on it (IBV_EVENT_CQ_ERR), whose fault() says
/// so.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  [[nodiscard]] virtual bool overrun() const = 0;
};

struct QueuePairOptions {
  Path path = Path::wire;
  int max_send_wr = 128;  ///< at most Limits::max_send_wr
  int max_recv_wr = 128;
};

/// A reliable connection (IBV_QPT_RC): requests run in the order of posting. A request's place in its queue is free
/// again once its completion, or that of a later request, was polled.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual std::uint32_t number() const = 0;
  [[nodiscard]] virtual Path path() const = 0;
  /// What both ends of the connection can do: the smaller of the two sides' limits.
  [[nodiscard]] virtual const Limits& limits() const = 0;
  /// A chain of requests with one doorbell. Errors: limit (sg_list too long, message or inline data too large, queue
  /// full, a binding that the device cannot hold), invalid_argument. Then nothing of the chain is posted, and the queue
  /// pair works on.
  virtual Result<void> post_chain(std::span<const SendRequest> chain) = 0;
  Result<void> post_send(const SendRequest& request) { return post_chain({&request, 1}); }
  virtual Result<void> post_recv(const RecvRequest& request) = 0;
  /// Why this queue pair is in error: the first failed request, or what became of the peer. Null while it works. A
  /// one-sided target, which has no request that could fail, learns from here that nothing more will come.
  [[nodiscard]] virtual const base::Error* fault() const = 0;
  /// Where this CPU can load and store `bytes` of the peer's region itself (UCX's rkey_ptr); null if it cannot, or if
  /// the region does not hold them with both remote rights. It stays mapped as long as the queue pair, but no key
  /// guards it any more: it is for memory that its owner keeps, lends to one peer at a time, and hands to keep()
  /// before it closes.
  [[nodiscard]] virtual std::byte* rkey_ptr(std::uint64_t /*addr*/, std::uint32_t /*rkey*/, std::size_t /*bytes*/) const { return nullptr; }
  /// Takes memory of this end that the peer may reach by rkey_ptr(). It stays as it is, key and all, until both ends'
  /// queue pairs are gone, or the peer has died: a peer that has not noticed yet that this end closed reads and writes
  /// no memory of others.
  virtual void keep(const SharedBuffer& /*memory*/) {}
  /// Whether copy() works.
  [[nodiscard]] virtual bool copies() const { return false; }
  /// Copies at once, by this CPU, as many bytes from `ours` to `theirs`, or from there, past all queues. No key guards
  /// that either, none is looked at: it is for memory that the peer has just named for it, and keeps. Errors:
  /// unsupported; transfer (the memory is not there), peer_lost.
  virtual Result<void> copy(bool /*to_peer*/, std::span<const Sge> /*ours*/, std::span<const Sge> /*theirs*/) {
    return base::fail(base::Code::unsupported, "this path has no copies past its queues");
  }
};

/// Messages to and from every process of a group, without connections that both ends make: the device connects two of
/// them when one first sends to the other (DC of mlx5; FI_EP_RDM of libfabric), and what comes takes receives of one
/// queue, whichever process sent it (ibv_srq). Reliable, and in order between two of them. Its Completions have the
/// number of the process at the other end in `qp_num`.
class Hub {
 public:
  virtual ~Hub() = default;
  /// Opcode::send to a process of the group, or this one. Errors: as QueuePair::post_send(), with room for each process
  /// apart.
  virtual Result<void> post_send(int to, const SendRequest& request) = 0;
  virtual Result<void> post_recv(const RecvRequest& request) = 0;
  /// A queue pair connected to the one that the process makes by the same call, with the same `line`. Neither waits for
  /// the other; what is posted before the other one is there fails (retry_exc_err). Errors: as Context::connect().
  virtual Result<std::unique_ptr<QueuePair>> connect(int peer, int line, CompletionQueue& queue, const QueuePairOptions& options) = 0;
  /// As QueuePair::fault(), of what goes to one process and comes from there.
  [[nodiscard]] virtual const base::Error* fault(int peer) const = 0;
  /// A process of which fault() says something since this was asked last, one after the other; -1: none more.
  virtual int next_fault() = 0;
};

/// What a process says of itself once, so that others of its machine and user reach its memory without its help.
struct Card {
  alignas(8) std::array<std::byte, 96> bytes{};
};

class Context {
 public:
  virtual ~Context() = default;
  [[nodiscard]] virtual std::string_view nic_name() const = 0;
  [[nodiscard]] virtual const Limits& limits() const = 0;

  // Memory. Errors: out_of_memory, limit, invalid_argument (empty), unsupported (device memory on a NIC without it).
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  virtual Result<Region> register_memory(std::span<std::byte> bytes, Rights rights, MemoryKind kind = MemoryKind::host) = 0;
  /// For bindings of up to `entries` entries. Errors: limit, out_of_memory, unsupported (a NIC without indirect keys).
  virtual Result<IndirectKey> create_indirect_key(int entries) = 0;
  /// Errors: limit, unsupported (a NIC without memory windows).
  virtual Result<MemoryWindow> create_window() { return base::fail(base::Code::unsupported, "this NIC has no memory windows"); }

  // Queues.
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(int entries) = 0;
  /// Creates a queue pair and connects it to the one that the peer creates at the other end of `bootstrap`. Both name
  /// the same path. Errors: those of Bootstrap, unsupported (the path is not available between these two), permission,
  /// limit.
  virtual Result<std::unique_ptr<QueuePair>> connect(Bootstrap& bootstrap, CompletionQueue& queue, const QueuePairOptions& options) = 0;
  /// What attach() takes. Errors: unsupported (a NIC whose processes do not share memory).
  [[nodiscard]] virtual Result<Card> card() const {
    return base::fail(base::Code::unsupported, "processes of this NIC reach one another by connections only");
  }
  /// Reaches the memory of the process whose card that is; that process does nothing for it, and is not told. The
  /// queue pair has no queues: rkey_ptr(), copy() and fault() work. Memory that it shall keep() stays as long as this
  /// process. Errors: unsupported; malformed; those of the system.
  virtual Result<std::unique_ptr<QueuePair>> attach(const Card& /*peer*/) {
    return base::fail(base::Code::unsupported, "processes of this NIC reach one another by connections only");
  }
  /// All processes of the group make theirs, and wait for one another. The queue has room for as many completions as
  /// there are receives, and sends under way. Errors: unsupported (a NIC without one), limit, timeout.
  virtual Result<std::unique_ptr<Hub>> create_hub(CompletionQueue& /*queue*/, const QueuePairOptions& /*options*/) {
    return base::fail(base::Code::unsupported, "processes of this NIC reach one another by connections only");
  }
  /// Moves up to completions.size() completions out of the queue and drives the queue pairs attached to it. Never
  /// blocks.
  virtual int poll(CompletionQueue& queue, std::span<Completion> completions) = 0;

  // The CPU's copies (copy.hpp).
  virtual void pack(const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out,
                    copy::Caching caching) = 0;
  virtual void unpack(const layout::Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in,
                      copy::Caching caching) = 0;
  virtual Result<void> transpack(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base) = 0;
  /// The value of an aligned word that a peer may be writing; what was written before it is visible afterwards.
  virtual std::uint64_t load_flag(const std::uint64_t* flag) = 0;

  // Time.
  [[nodiscard]] virtual std::int64_t now() = 0;  ///< nanoseconds of a monotonic clock
  /// Lets time pass after a poll that found nothing. Errors: timeout once now() is past `deadline`.
  virtual Result<void> wait(std::int64_t deadline) = 0;
  /// Nanoseconds since creation that this CPU did not spend in wait() and fruitless polls: what communication costs the
  /// program.
  [[nodiscard]] virtual std::int64_t busy_ns() = 0;

 protected:
  friend class Buffer;
  friend class Region;
  friend class IndirectKey;
  friend class MemoryWindow;
  virtual void free(std::span<std::byte> bytes) = 0;
  virtual void deregister(std::uint32_t lkey) = 0;
  virtual bool revoke(std::uint32_t /*lkey*/, std::int64_t /*wait_ns*/) { return true; }
  virtual void destroy_indirect_key(std::uint32_t key) = 0;
  virtual std::uint32_t next_window_key(std::uint32_t key) { return key; }
  virtual void destroy_window(std::uint32_t /*key*/) {}
};

// --- opening --------------------------------------------------------------------------------------------------------

/// As IndirectLimits; what is not given stays the NIC's own. No keys: as on a NIC that has none; no strided entries:
/// lists only.
struct IndirectOptions {
  std::optional<int> keys, entries, inline_entries, strided_entries;
  std::optional<std::int64_t> stride;
};

/// Limits that a test or a user sets below what the NIC could do; 0, or nothing, keeps the NIC's own.
struct OpenOptions {
  int max_sge = 0;
  int max_sge_rd = 0;
  std::optional<int> max_inline;
  int max_send_wr = 0;
  int max_recv_wr = 0;
  std::int64_t max_message_bytes = 0;
  IndirectOptions indirect;
  std::int64_t shared_bytes = 0;      ///< of address space for Context::allocate, where peers map it whole
  std::vector<Path> forbidden_paths;  ///< treated as if the system refused them
  /// Peers are answered while the program does not poll, by a thread where the NIC has no other way: so paths have a
  /// passive target that have none without
  bool attended = false;
};

/// Names of the NICs of this build.
[[nodiscard]] std::vector<std::string> nic_names();
/// Errors: invalid_argument (no NIC of that name; the message lists them), permission, out_of_memory.
Result<std::unique_ptr<Context>> open(std::string_view name, const OpenOptions& options = {});

/// For a program that names no NIC: what LACUNA_NIC names; else NIC local, or, if other machines are to be reached, an
/// RDMA device, else what libfabric has. Errors: as open(); unsupported: there is none of both, and why.
Result<std::unique_ptr<Context>> open_usual(bool other_machines);

/// A Bootstrap over a Unix stream socket, which can pass files and learns the peer's process from the kernel.
class UnixBootstrap final : public Bootstrap {
 public:
  explicit UnixBootstrap(base::Fd socket) : socket_(std::move(socket)) {}
  Result<Hello> exchange(const Hello& mine, std::int64_t timeout_ns) override;
  /// Two connected ends, for a fork or for two threads.
  static Result<std::pair<base::Fd, base::Fd>> socket_pair();

 private:
  base::Fd socket_;
};

}  // namespace lacuna::nic
