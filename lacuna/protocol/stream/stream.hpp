// A stream: a message that its sender packs, chunk by chunk, into a window of its own memory, which the receiver's CPU reaches. The sender
// begins at once, whether anybody asked or not, and goes on as places become empty:
//
//   sender    pack 0 │ announce │ pack 1 │ pack 2 │ pack 3 │ ...            filled counts its chunks,
//   receiver                    │ match  │unpack 0│unpack 1│ ...            emptied the receiver's
//
// So the two CPUs copy side by side, and nothing is copied but by pack and unpack. Windows are few: a message that finds none is announced
// and gets one once it is matched; one window is kept for such, so they cannot all be taken by messages that nobody receives.
//
// What an offer (Communicator::offer) has to leave behind at once moves to a place of its own, which has room for all the rest: the last chunk
// of the window says where that is. An offer may be for a direct copy at first (direct.hpp); then nothing is packed until it is refused.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/stream/direct.hpp"
#include "lacuna/protocol/stream/stores.hpp"

namespace lacuna::protocol {

inline constexpr std::uint32_t kLine = 64;
inline constexpr std::uint32_t kPage = 4096;

/// What the receiver has to know of a window; a body.
struct Window {
  std::uint64_t addr = 0;
  std::uint64_t first = 0;  ///< what `filled` was before this message
  std::uint32_t rkey = 0;
  std::uint32_t at = 0;      ///< where the first chunk is; a multiple of a chunk. The others follow, and go on at the beginning
  std::uint32_t answer = 0;  ///< the number of the answer that it was made for; 0: none
  std::uint16_t pages = 0;   ///< 4096 bytes each, of the window
  std::uint16_t lines = 0;   ///< 64 bytes each, of each chunk but the last; a power of two
};

/// How the bytes of a message travel.
enum class Transit : std::uint8_t {
  wide,    ///< packed into several windows in turn, and all of each
  narrow,  ///< packed into a part of one
  direct,  ///< past its window
};

/// A window, as it lies in memory: what both ends count, and the bytes behind it. Written by the sender, but for the last line.
struct alignas(kPage) WindowMemory {
  static constexpr std::int64_t kTimed = 32 << 10;  ///< bytes of a message, at least, that is timed
  alignas(64) std::atomic<std::uint64_t> filled;
  std::atomic<std::uint64_t> moved;  ///< if not 0: the chunk that makes `filled` this has no bytes, and the next one is the first of `rest`
  Window rest;
  alignas(64) std::atomic<std::uint64_t> emptied;
  std::atomic<std::uint64_t> took_of;           ///< what `emptied` was after the last message that was timed,
  std::atomic<std::uint64_t> took_ns;           ///< and how long it took
  DirectMemory direct;                          ///< both ends'
  alignas(64) std::atomic<std::int64_t> began;  ///< when the sender began with a message that is timed, in ns of base::now_ns()
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

/// The windows of this end's memory for one peer, used in turn; one is kept for messages that are matched already, and one for long messages.
/// And extra places, as many as are asked for.
class Windows {
 public:
  static constexpr std::size_t kWindows = 5;
  static constexpr std::uint32_t kBytes = 512 << 10;
  static constexpr std::uint32_t kNarrowBytes = 128 << 10;
  static constexpr std::uint32_t kLongBytes = 2 << 20;
  static constexpr std::uint32_t kMostBytes = 64 << 20;  ///< of an extra place

  struct Place {
    WindowMemory* memory = nullptr;
    std::uint32_t bytes = 0;
    Transit transit = Transit::wide;  ///< of the message that is there
    std::uint32_t rkey = 0;
    std::uint32_t at = 0;  ///< behind what was packed last
    bool taken = false;
    bool populated = false;
    [[nodiscard]] std::uint32_t ring_bytes() const { return transit == Transit::narrow ? kNarrowBytes : bytes; }
    [[nodiscard]] bool empty() const {
      return memory == nullptr || memory->emptied.load(std::memory_order_acquire) == memory->filled.load(std::memory_order_relaxed);
    }
  };

  /// A place that is taken, until it is used or this goes.
  class Hold {
   public:
    explicit Hold(Place& place) : place_(&place) {}
    Hold(Hold&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(place_, other.place_);
      return *this;
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (place_ != nullptr) place_->taken = false;
    }
    [[nodiscard]] std::uint32_t bytes() const { return place_->bytes; }
    [[nodiscard]] Place& place() const { return *place_; }
    [[nodiscard]] Place& use() { return *std::exchange(place_, nullptr); }

   private:
    Place* place_;
  };

  /// Takes a window that is empty, for a message of so many bytes; `answered`: it is matched already; `transit`: which is best. Null: none is.
  /// Errors: those of Context::allocate and register_memory.
  Result<Place*> take(nic::Context& context, std::int64_t bytes, bool answered, Transit transit);
  /// Takes an extra place with room for so many bytes, or for kMostBytes of them. Errors: as take().
  Result<Place*> take_extra(nic::Context& context, std::int64_t bytes);
  /// Whether all that was packed was unpacked.
  [[nodiscard]] bool empty() const;
  /// Ends them: what the peer may still reach stays until it cannot (QueuePair::keep).
  void end(Channel& channel);
  /// Of extra places that are taken or not yet empty.
  [[nodiscard]] std::int64_t extra_bytes() const;

 private:
  struct Extra {
    nic::RegisteredBuffer memory;
    std::deque<Place> places;  // of one size
  };
  Result<void> make(nic::Context& context);
  void trim();
  nic::RegisteredBuffer memory_;
  std::array<Place, kWindows> places_{};
  std::size_t last_ = 0;  // taken, but for the long one
  std::list<Extra> extras_;
};

/// Bytes of the chunks of a message.
[[nodiscard]] std::uint32_t chunk_of(std::int64_t bytes, copy::Caching caching);

/// The sender's end of one stream.
class OutStream {
 public:
  OutStream(Windows::Place& place, const Stores& stores, std::int64_t bytes);
  [[nodiscard]] Window describe(std::uint32_t answer) const {
    return {.addr = reinterpret_cast<std::uint64_t>(place_->memory),
            .first = first_,
            .rkey = place_->rkey,
            .at = at_,
            .answer = answer,
            .pages = static_cast<std::uint16_t>(place_->ring_bytes() / kPage),
            .lines = static_cast<std::uint16_t>(chunk_ / kLine)};
  }
  /// Packs what there is room for; true if something was. Errors: malformed (the peer counts what was not sent).
  Result<bool> step(nic::Context& context, Stores& stores, const layout::Layout& layout, const std::byte* base);
  [[nodiscard]] bool done() const { return packed_ == bytes_; }
  /// What `emptied` is once all was received.
  [[nodiscard]] std::uint64_t last() const {
    return first_ + (place_->transit == Transit::direct ? 1 : static_cast<std::uint64_t>((bytes_ + chunk_ - 1) / chunk_));
  }
  /// Bytes that are not packed yet.
  [[nodiscard]] std::int64_t left() const { return bytes_ - packed_; }
  /// What its place takes of it.
  [[nodiscard]] std::int64_t room() const { return place_->ring_bytes(); }
  /// Bytes of a place that takes so many, at least.
  [[nodiscard]] std::int64_t place_of(std::int64_t bytes) const { return std::max<std::int64_t>(chunk_, bytes); }
  /// What is left goes to another place, which is empty and this one's from now on.
  void move_to(Windows::Place& place);
  /// A direct copy of it, before anything else is done. `patient`: until it is withdrawn.
  void offer_directly(const DirectEnd& own, bool patient);
  /// Whether the offer stands, or was taken.
  [[nodiscard]] bool direct() const { return place_->transit == Transit::direct; }
  [[nodiscard]] DirectMemory& direct_memory() const { return place_->memory->direct; }
  [[nodiscard]] DirectState direct_state() const { return place_->memory->direct.of(first_ + 1); }
  /// As long as packing would take: so nobody loses more than twice that.
  [[nodiscard]] bool waited_for_long() const { return base::now_ns() > patient_until_; }
  /// False: it is taken.
  bool withdraw();
  /// It will be packed.
  void pack_after_all() { place_->transit = Transit::wide; }
  /// It was copied.
  void copied();
  /// Nobody knows of it: what was packed is as if it had been read. Not once it has moved.
  void take_back() {
    if (direct()) withdraw();
    place_->memory->emptied.store(place_->memory->filled.load(std::memory_order_relaxed), std::memory_order_relaxed);
    give_back();
  }
  /// Once it is done.
  void give_back() {
    place_->at = next_;
    place_->taken = false;
  }

 private:
  void begin(Windows::Place& place);
  Windows::Place* place_;
  std::int64_t bytes_;
  std::int64_t packed_ = 0;
  std::uint32_t chunk_;
  std::uint32_t at_;       // where the first chunk is,
  std::uint32_t next_;     // and the next one
  std::uint64_t first_;    // what `filled` was before this message
  std::uint64_t emptied_;  // as far as it was looked at
  std::int64_t patient_until_ = 0;
};

/// The windows of a peer that this end has seen.
class Seen {
 public:
  /// Has the pages of a new one mapped at once.
  void look(const WindowMemory& window, std::uint32_t bytes);

 private:
  static constexpr std::size_t kMost = 1024;  // that are remembered
  std::unordered_map<const WindowMemory*, std::uint32_t> seen_;
};

/// The receiver's end.
class InStream {
 public:
  /// Errors: malformed (a window that is none).
  static Result<InStream> open(const Channel& channel, Seen& seen, const Window& window, std::int64_t bytes);
  /// Unpacks what has come, as far as the layout goes; the rest is dropped. True if something had come. Errors: malformed.
  Result<bool> step(nic::Context& context, const layout::Layout& layout, std::byte* base);
  [[nodiscard]] bool done() const { return taken_ == bytes_; }

  // Instead of step(), where the sender offers a direct copy.
  [[nodiscard]] bool offers_directly() const { return window_->direct.of(first_ + 1) == DirectState::offered; }
  [[nodiscard]] DirectMemory& direct_memory() const { return window_->direct; }
  /// False: it does no more.
  bool take_directly(const DirectEnd& own);
  void refuse_directly() { window_->direct.settle(first_ + 1, DirectState::refused); }
  void copied();

 private:
  InStream(const Channel& channel, Seen& seen, WindowMemory& window, const Window& what, std::int64_t bytes)
      : channel_(&channel),
        seen_(&seen),
        window_(&window),
        window_bytes_(what.pages * kPage),
        bytes_(bytes),
        chunk_(what.lines * kLine),
        at_(what.at),
        first_(what.first) {}
  Result<void> follow();
  void begin();
  void tell_time(std::uint64_t last);
  const Channel* channel_;
  Seen* seen_;
  WindowMemory* window_;
  std::uint32_t window_bytes_;
  std::int64_t bytes_;
  std::int64_t taken_ = 0;
  std::uint32_t chunk_;
  std::uint32_t at_;  // where the next chunk is
  std::uint64_t first_;
  std::uint64_t chunks_ = 0;  // taken
  std::uint64_t told_ = 0;    // of them
  std::int64_t began_ = 0;    // ns, if it is timed
};

}  // namespace lacuna::protocol
