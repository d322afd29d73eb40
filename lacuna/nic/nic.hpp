// nic: the device seam, shaped like verbs because that is what the hardware is. It hides which NIC.
//
//   Context ── owns ──▶ regions (keys), completion queues, queue pairs          one Context for each (simulated) process
//      │                                                        │
//      └─ the CPU's copies, the clock, waiting                  └─ connected through a Bootstrap to one peer's queue pair
//
// Everything that a method or protocol does to time goes through its Context: copies, registration, waiting and the clock.
// On real NICs these are the plain calls; a simulated NIC charges time for them. Nothing is process-global. A Context and what it
// owns belong to one thread at a time; different Contexts are independent, also within one process. Destroy in the order opposite to
// creation: queue pairs before their completion queue, regions before their memory, everything before its Context.
//
// Data paths. A NIC may reach a peer's memory in several ways, each best for something; a queue pair uses one of them, named when it
// is created. Layers above measure them; none is a default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::nic {

using base::Result;

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

enum class MemoryKind { host, device };

/// Rights of a region; local read is always granted (ibv_access_flags).
struct Rights {
  bool local_write = true;
  bool remote_write = true;
  bool remote_read = true;
  /// Bytes may land in any order, where the device can do that (IBV_ACCESS_RELAXED_ORDERING). For data of which a completion or a flag in another
  /// region tells; never for memory with a flag in it.
  bool relaxed = false;
};

/// One entry of a scatter/gather list (ibv_sge): `length` bytes at virtual address `addr` in the region of `lkey`.
struct Sge {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

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

/// What a bind request makes an indirect key stand for: the pieces of `list` one after the other; or `repeat` rounds, each of which takes one
/// repetition of every entry of `strided`. The entries' keys are those of regions, whose rights count too, at every access.
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
  std::span<const Sge> sg_list;      ///< source; of a read, destination
  std::uint64_t remote_addr = 0;     ///< write, write_imm, read
  std::uint32_t rkey = 0;            ///< write, write_imm, read; of invalidate, the key
  bool signaled = true;              ///< an unsignaled request completes in silence unless it fails
  bool fence = false;                ///< waits until all reads before it are done (IBV_SEND_FENCE); a bind always does
  bool inline_data = false;          ///< the bytes are copied at once, by no key; at most Limits::max_inline of them (IBV_SEND_INLINE)
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
  std::int64_t stride = 0;  ///< the largest stride, and the largest piece, of a strided entry, in bytes: 16 bits on mlx5
  std::string note;         ///< with the device's name: why there are none, or how much they were tried

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
  bool emulated = false;               ///< a device in software, at either end: what it takes says nothing about hardware
  /// Does a registration hold the pages that it finds, so that what is mapped at their addresses later is reached by no key of it? Else keys are of addresses.
  bool pins = false;
  IndirectLimits indirect;
  std::vector<PathInfo> paths;

  [[nodiscard]] const PathInfo* path(Path which) const;
};

// --- objects --------------------------------------------------------------------------------------------------------

class Context;

/// Memory that a Context allocated; zero-filled, page aligned, freed on destruction. On some NICs it alone can be reached by some paths.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Context& context, std::span<std::byte> bytes) : context_(&context), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
  }
  Context* context_ = nullptr;
  std::span<std::byte> bytes_;
};

/// A registered stretch of memory (ibv_mr); deregistered on destruction, after which no peer touches it any more (a peer that is stopped in
/// the middle of an access is waited for a second, then the log says so).
class Region {
 public:
  Region() = default;
  Region(Context& context, std::span<std::byte> bytes, std::uint32_t lkey, std::uint32_t rkey, MemoryKind kind, bool shared)
      : context_(&context), bytes_(bytes), lkey_(lkey), rkey_(rkey), kind_(kind), shared_(shared) {}
  Region(Region&& other) noexcept { swap(other); }
  Region& operator=(Region&& other) noexcept {
    swap(other);
    return *this;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();
  [[nodiscard]] std::uint64_t addr() const { return reinterpret_cast<std::uint64_t>(bytes_.data()); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t lkey() const { return lkey_; }
  [[nodiscard]] std::uint32_t rkey() const { return rkey_; }
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  [[nodiscard]] bool shared() const { return shared_; }  ///< reachable by paths that are shared_only

 private:
  void swap(Region& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
    std::swap(lkey_, other.lkey_);
    std::swap(rkey_, other.rkey_);
    std::swap(kind_, other.kind_);
    std::swap(shared_, other.shared_);
  }
  Context* context_ = nullptr;
  std::span<std::byte> bytes_;
  std::uint32_t lkey_ = 0;
  std::uint32_t rkey_ = 0;
  MemoryKind kind_ = MemoryKind::host;
  bool shared_ = false;
};

/// A buffer, of one byte at least, and the region over all of it.
struct RegisteredBuffer {
  Buffer buffer;
  Region region;

  /// Errors: those of Context::allocate and register_memory.
  static Result<RegisteredBuffer> create(Context& context, std::int64_t bytes, Rights rights = {});
  [[nodiscard]] Sge sge(std::int64_t offset, std::int64_t length) const {
    return {region.addr() + static_cast<std::uint64_t>(offset), static_cast<std::uint32_t>(length), region.lkey()};
  }
};

/// One key for many pieces of memory, as if they lay end to end (a UMR; mlx5dv_mkey). It is zero-based: an address given with it is an offset
/// into the pieces. Creating one is expensive, binding is not free (F20), so keys are bound again and again. A bind request of any queue
/// pair of the Context gives it its pieces, in the order of that queue: what is posted behind it there may use the key at once, everybody else
/// after its completion. Bind it anew, or invalidate it, once the sends and writes that name it are complete: until then a device may fetch their bytes
/// once more. Until it is bound, and after an invalidate request, every use of it is an access error.
class IndirectKey {
 public:
  IndirectKey() = default;
  IndirectKey(Context& context, std::uint32_t key, int entries) : context_(&context), key_(key), entries_(entries) {}
  IndirectKey(IndirectKey&& other) noexcept { swap(other); }
  IndirectKey& operator=(IndirectKey&& other) noexcept {
    swap(other);
    return *this;
  }
  IndirectKey(const IndirectKey&) = delete;
  IndirectKey& operator=(const IndirectKey&) = delete;
  ~IndirectKey();
  [[nodiscard]] std::uint32_t lkey() const { return key_; }
  [[nodiscard]] std::uint32_t rkey() const { return key_; }
  [[nodiscard]] int entries() const { return entries_; }  ///< that a binding may have

 private:
  void swap(IndirectKey& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(key_, other.key_);
    std::swap(entries_, other.entries_);
  }
  Context* context_ = nullptr;
  std::uint32_t key_ = 0;
  int entries_ = 0;
};

/// A right of one queue pair's peer to a stretch of a region, which ends with the window (a memory window of type 2; ibv_alloc_mw(3)). Binding and
/// invalidating one is a work request of that queue pair, cheaper than a registration. A bind request's binding has a list of one entry, whose address is
/// the memory's own, not an offset. The region need not grant the peer anything itself; one that is written into has to grant local writes. A bound window is
/// invalidated before it is bound again. Local requests cannot use it. Destroy it before its region.
class Window {
 public:
  Window() = default;
  Window(Context& context, std::uint32_t key) : context_(&context), key_(key) {}
  Window(Window&& other) noexcept { swap(other); }
  Window& operator=(Window&& other) noexcept {
    swap(other);
    return *this;
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();
  /// For the next binding: another one each time, so that an old one never fits a new binding. With it the peer reaches the memory once the bind request is
  /// complete, and until the request that invalidates it is.
  std::uint32_t next_key();

 private:
  void swap(Window& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(key_, other.key_);
  }
  Context* context_ = nullptr;
  std::uint32_t key_ = 0;
};

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

/// Completions of one or several queue pairs (ibv_cq). Whoever creates it makes room for what may be outstanding: a completion that finds it
/// full is lost, and with it the queue and every queue pair on it (IBV_EVENT_CQ_ERR), whose fault() says so.
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

/// A reliable connection (IBV_QPT_RC): requests run in the order of posting. A request's place in its queue is free again once its
/// completion, or that of a later request, was polled.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual std::uint32_t number() const = 0;
  [[nodiscard]] virtual Path path() const = 0;
  /// What both ends of the connection can do: the smaller of the two sides' limits.
  [[nodiscard]] virtual const Limits& limits() const = 0;
  /// A chain of requests with one doorbell. Errors: limit (sg_list too long, message or inline data too large, queue full, a binding that the
  /// device cannot hold), invalid_argument. Then nothing of the chain is posted, and the queue pair works on.
  virtual Result<void> post_chain(std::span<const SendRequest> chain) = 0;
  Result<void> post_send(const SendRequest& request) { return post_chain({&request, 1}); }
  virtual Result<void> post_recv(const RecvRequest& request) = 0;
  /// Why this queue pair is in error: the first failed request, or what became of the peer. Null while it works. A one-sided target, which
  /// has no request that could fail, learns from here that nothing more will come.
  [[nodiscard]] virtual const base::Error* fault() const = 0;
  /// Where this CPU can load and store `bytes` of the peer's region itself (UCX's rkey_ptr); null if it cannot, or if the region does not hold
  /// them with both remote rights. It stays mapped as long as the queue pair, but no key guards it any more: it is for memory that its owner
  /// keeps and gives to this peer alone, and hands to keep() before it closes.
  [[nodiscard]] virtual std::byte* rkey_ptr(std::uint64_t /*addr*/, std::uint32_t /*rkey*/, std::size_t /*bytes*/) const { return nullptr; }
  /// Takes memory of this end that the peer may reach by rkey_ptr(). It stays as it is, key and all, until both ends' queue pairs are gone, or the
  /// peer has died: a peer that has not noticed yet that this end closed reads and writes nobody else's.
  virtual void keep(RegisteredBuffer /*memory*/) {}
  /// Whether copy() works.
  [[nodiscard]] virtual bool copies() const { return false; }
  /// Copies at once, by this CPU, as many bytes from `ours` to `theirs`, or from there, past all queues. No key guards that either, none is looked at: it
  /// is for memory that the peer has just named for it, and keeps. Errors: unsupported; transfer (the memory is not there), peer_lost.
  virtual Result<void> copy(bool /*to_peer*/, std::span<const Sge> /*ours*/, std::span<const Sge> /*theirs*/) {
    return base::fail(base::Code::unsupported, "this path has no copies past its queues");
  }
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
  virtual Result<Window> create_window() { return base::fail(base::Code::unsupported, "this NIC has no memory windows"); }

  // Queues.
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(int entries) = 0;
  /// Creates a queue pair and connects it to the one that the peer creates at the other end of `bootstrap`. Both name the same path.
  /// Errors: those of Bootstrap, unsupported (the path is not available between these two), permission, limit.
  virtual Result<std::unique_ptr<QueuePair>> connect(Bootstrap& bootstrap, CompletionQueue& queue, const QueuePairOptions& options) = 0;
  /// Moves up to completions.size() completions out of the queue and drives the queue pairs attached to it. Never blocks.
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
  /// Nanoseconds since creation that this CPU did not spend in wait() and fruitless polls: what communication costs the program.
  [[nodiscard]] virtual std::int64_t busy_ns() = 0;

 protected:
  friend class Buffer;
  friend class Region;
  friend class IndirectKey;
  friend class Window;
  virtual void free(std::span<std::byte> bytes) = 0;
  virtual void deregister(std::uint32_t lkey) = 0;
  virtual void destroy_indirect_key(std::uint32_t key) = 0;
  virtual std::uint32_t next_window_key(std::uint32_t key) { return key; }
  virtual void destroy_window(std::uint32_t /*key*/) {}
};

// --- opening --------------------------------------------------------------------------------------------------------

/// As IndirectLimits; what is not given stays the NIC's own. No keys: as on a NIC that has none; no strided entries: lists only.
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
  std::vector<Path> forbidden_paths;  ///< treated as if the system refused them
};

/// Names of the NICs of this build.
[[nodiscard]] std::vector<std::string> nic_names();
/// Errors: invalid_argument (no NIC of that name; the message lists them), permission, out_of_memory.
Result<std::unique_ptr<Context>> open(std::string_view name, const OpenOptions& options = {});

/// What this machine's devices promise, and what they were found to take, for people (`lacuna info`).
struct DeviceInfo {
  std::string nic;     ///< what open() takes
  std::string driver;  ///< of the kernel; empty where nobody knows
  std::string firmware;
  bool emulated = false;   ///< as Limits
  std::string refusal;     ///< why open() refuses it; empty if it does not
  std::string connection;  ///< the port, GID and MTU that its connections use; empty if it is refused
  Limits advertised;       ///< as far as the device tells
  Limits probed;           ///< what queue pairs take, and so open() gives; all 0 if it is refused
  std::string no_umr;      ///< why it has no indirect keys; empty if it has
  std::string windows;     ///< the kinds of its memory windows: "", "1", "1, 2A", "1, 2B"
  bool on_demand_paging = false;
  struct Port {
    int number = 0;
    std::string state, link_layer;  ///< as libibverbs calls them
    int active_mtu = 0, max_mtu = 0;
    int lid = 0;
  };
  std::vector<Port> ports;
};
struct Devices {
  std::string none;  ///< why there are none, in a line
  std::vector<DeviceInfo> list;
};
[[nodiscard]] Devices describe_devices();

/// Simulated processes, in virtual time and in this process. Each has a Context, of one thread of its own while run() lasts; now() of all of them is
/// one clock, which stands still between two calls of the seam.
class World {
 public:
  virtual ~World() = default;
  using Program = std::function<Result<void>(int rank)>;
  [[nodiscard]] virtual int ranks() const = 0;
  [[nodiscard]] virtual Context& context(int rank) = 0;
  /// The channel of one rank to another. It costs no time, and both ends wait for one another.
  virtual Bootstrap& bootstrap(int rank, int peer) = 0;
  /// Runs the program of all ranks to their ends. Queues and queue pairs that it made, it destroys. Errors: the first rank's that has one.
  virtual Result<void> run(const Program& program) = 0;
};

struct WorldOptions {
  std::string profile;      ///< a file (docs/design/model.md)
  std::string overrides;    ///< JSON: {"parameter": value, ...}; empty for none
  int ranks = 2;            ///< each with a NIC of its own
  bool moves_bytes = true;  ///< false: only time is of interest. Then memory holds whatever it held, and flags are raised all the same
  OpenOptions limits;
};
/// Errors: invalid_argument (what is wrong with the profile, or a parameter, is named), io (the file), limit (ranks).
Result<std::unique_ptr<World>> simulate(const WorldOptions& options);

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
