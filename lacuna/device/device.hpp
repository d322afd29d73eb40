// device: memory that another processor computes in, and copies between layouts of such memory. It hides which
// processor that is, and how a copy is cut among its threads.
//
//   pairs of layouts ──▶ CopyPlan: parts and tables ──▶ one launch on the caller's stream ──▶ cuda: a GPU
//                         (made once)                (nothing waits or allocates)    └──▶ emulated: the same on the CPU
//
// A plan is the device's form of a pair of layouts: both sides as one nest of loops, each with two strides or lists.
// Packing is moving into Layout::bytes(n), unpacking is moving out of it, and layout to layout takes one pass, too.
// Many pairs are one launch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::device {

using base::Result;
using layout::Layout;

/// What there is to know of a device.
struct Card {
  std::string name;               ///< "cuda:0", "emulated": what open() takes
  std::string model;              ///< "NVIDIA H100 80GB HBM3"
  std::string driver;             ///< the newest CUDA that it knows: "13.0"
  int processors = 0;             ///< streaming multiprocessors
  std::int64_t memory_bytes = 0;  ///< of the device
  std::int64_t cache_bytes = 0;   ///< L2
};

/// A queue of the device's work, in order: a CUstream (cudaStream_t is the same), or null for the device's default
/// queue.
using Stream = void*;

/// A point in a stream. CUevent.
using Event = void*;

/// Names an allocation for another process of this node.
using Share = std::array<std::byte, 72>;

struct Tuning;
struct Launched;

/// The seam. Functions may be called from any thread; what a stream holds is done in order, and nothing here waits but
/// wait() and what says so.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] virtual const Card& card() const = 0;

  /// `bytes` > 0 of the device's memory, aligned to 256 bytes. Errors: out_of_memory.
  [[nodiscard]] virtual Result<void*> allocate(std::int64_t bytes) = 0;
  /// Memory of the host that the device reaches, too. Errors: out_of_memory.
  [[nodiscard]] virtual Result<void*> allocate_pinned(std::int64_t bytes) = 0;
  /// What allocate() or allocate_pinned() gave, or null. Waits for the device.
  virtual void free(void* memory) noexcept = 0;

  /// Copies between any two places of host and device. The host's memory must stay until the stream is there; memory
  /// that is not pinned may make the call wait.
  virtual Result<void> copy(void* to, const void* from, std::int64_t bytes, Stream stream) = 0;
  virtual Result<void> fill(void* to, std::uint8_t value, std::int64_t bytes, Stream stream) = 0;
  /// `rows` times `width` bytes, which lie `to_pitch` and `from_pitch` bytes apart: the copy engine's own way.
  virtual Result<void> copy_rows(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch, std::int64_t width,
                                 std::int64_t rows, Stream stream) = 0;
  /// For CopyPlan alone: the parts of one way.
  virtual Result<void> launch(const Launched& launched, Stream stream) = 0;

  [[nodiscard]] virtual Result<Stream> create_stream() = 0;
  virtual void destroy_stream(Stream stream) noexcept = 0;
  /// Until the stream has done what it holds. Errors: transfer (some work failed; of which kind, the message says).
  virtual Result<void> wait(Stream stream) = 0;

  [[nodiscard]] virtual Result<Event> create_event() = 0;
  virtual void destroy_event(Event event) noexcept = 0;
  virtual Result<void> record(Event event, Stream stream) = 0;
  /// What the stream is given from now on begins after the event.
  virtual Result<void> wait_in_stream(Event event, Stream stream) = 0;
  /// Between two events that have happened; waits for the second.
  [[nodiscard]] virtual Result<double> elapsed_us(Event begin, Event end) = 0;

  /// Lets another process of this node attach() the allocation that begins at `memory`. Errors: unsupported.
  [[nodiscard]] virtual Result<Share> share(void* memory) = 0;
  /// Another process's memory, here. detach() before the owner frees it.
  [[nodiscard]] virtual Result<void*> attach(const Share& share) = 0;
  virtual void detach(void* memory) noexcept = 0;

  /// Whether the address is memory of a device of this kind, of this process or attached; false for the host's.
  [[nodiscard]] virtual bool owns(const void* address) const = 0;
};

/// "cuda:N" or "emulated". The same device each time, as long as somebody has it. Errors: unsupported (what is missing,
/// and what to do), invalid_argument.
[[nodiscard]] Result<std::shared_ptr<Device>> open(std::string_view name);

/// The name of the device whose memory an address is. Errors: unsupported, invalid_argument (no device's).
[[nodiscard]] Result<std::string> device_of(const void* address);

/// The devices of this machine that are no emulation, or why there are none.
[[nodiscard]] Result<std::vector<Card>> cards();

// --- plans -----------------------------------------------------------------------------------------------------------

/// One layout into another of the same size. No byte of `to` occurs twice.
struct Pair {
  Layout from;
  Layout to;
};

/// Where offset 0 of a pair's layouts is. Memory of the device, attached memory, or pinned memory of the host.
struct Addresses {
  const void* from;
  void* to;
};

/// Pairs, compiled for a device.
class CopyPlan {
 public:
  static constexpr std::size_t kMostPairs = 64;

  /// Takes memory of the device where tables are needed, and waits for its default stream then. `alignment`: a power of
  /// two, 1 to 16, that will divide all addresses. Errors: invalid_argument (sizes that differ, more than kMostPairs
  /// pairs), limit (more pieces than tables can hold), out_of_memory.
  [[nodiscard]] static Result<CopyPlan> make(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment = 16);

  CopyPlan(const CopyPlan&) = delete;
  CopyPlan& operator=(const CopyPlan&) = delete;
  CopyPlan(CopyPlan&& other) noexcept;
  CopyPlan& operator=(CopyPlan&& other) noexcept;
  ~CopyPlan();

  /// Moves all pairs, after what the stream holds already: one launch, or up to four, if some parts are words of 8
  /// or 16 bytes, some shorter words, some windows, and some squares. The plan must stay until the stream is there.
  /// Neither waits nor allocates, so that a CUDA graph can capture it. Errors: invalid_argument (not as many addresses
  /// as pairs; an address that is not aligned as was said).
  Result<void> move(std::span<const Addresses> addresses, Stream stream) const;

  /// The parts, a line each: "words of 16 B: 4096 x 512 x { 1024 B }".
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::int64_t table_bytes() const;  ///< of the device's memory

 private:
  friend Result<CopyPlan> make_plan(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment, const Tuning& tuning);
  struct State;
  explicit CopyPlan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Moves between layouts by plans that are made at first use and kept: the 64 last ones. For one thread at a time.
class Copies {
 public:
  explicit Copies(std::shared_ptr<Device> device);
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  Copies(Copies&& other) noexcept;
  Copies& operator=(Copies&& other) noexcept;
  ~Copies();

  /// As CopyPlan::move() with the pair's plan, which is made first if there is none: that may allocate and wait. Making
  /// room for it waits for the device.
  /// Errors: as CopyPlan's, invalid_argument (some byte of `to` occurs twice), limit (which is too dear to find out).
  Result<void> move(const Pair& pair, Addresses addresses, Stream stream);
  [[nodiscard]] const std::shared_ptr<Device>& device() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lacuna::device
