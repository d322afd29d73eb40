// A stream: a message that its sender packs, chunk by chunk, into a window of its own memory, which the receiver's CPU reaches. The sender
// begins at once, whether anybody asked or not, and goes on as places become empty:
//
//   sender    pack 0 │ announce │ pack 1 │ pack 2 │ pack 3 │ ...            filled counts its chunks,
//   receiver                    │ match  │unpack 0│unpack 1│ ...            emptied the receiver's
//
// So the two CPUs copy side by side, and nothing is copied but by pack and unpack. Windows are few: a message that finds none is announced
// and gets one once it is matched; one window is kept for such, so they cannot all be taken by messages that nobody receives.
#pragma once

#include <array>
#include <atomic>
#include <optional>

#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/channel.hpp"

namespace lacuna::protocol {

/// What the receiver has to know of a window; a body.
struct Window {
  std::uint64_t addr = 0;
  std::uint64_t first = 0;  ///< what `filled` was before this message
  std::uint32_t rkey = 0;
  std::uint32_t chunk = 0;   ///< bytes of each chunk but the last
  std::uint32_t answer = 0;  ///< the number of the answer that it was made for; 0: none
};

/// The windows of this end's memory for one peer.
class Windows {
 public:
  static constexpr int kWindows = 4;
  static constexpr std::int64_t kWindowBytes = 128 << 10;

  /// Memory that is packed into. Written by this end, but for `emptied`.
  struct Memory {
    alignas(64) std::atomic<std::uint64_t> filled;
    alignas(64) std::atomic<std::uint64_t> emptied;
    alignas(4096) std::array<std::byte, kWindowBytes> bytes;
  };

  /// Takes a window that is empty; `answered`: for a message that is matched already. Null: none is.
  /// Errors: those of Context::allocate and register_memory.
  Result<Memory*> take(nic::Context& context, bool answered);
  /// Its message is packed; it is taken again once it is empty.
  void give_back(Memory& window) { used_[index_of(window)] = false; }
  /// Whether all that was packed was unpacked.
  [[nodiscard]] bool empty() const;
  [[nodiscard]] Window describe(const Memory& window, std::uint32_t chunk, std::uint32_t answer) const;

 private:
  [[nodiscard]] std::size_t index_of(const Memory& window) const { return static_cast<std::size_t>(&window - windows()); }
  [[nodiscard]] Memory* windows() const { return reinterpret_cast<Memory*>(memory_.buffer.data()); }
  nic::RegisteredBuffer memory_;
  std::array<bool, kWindows> used_{};
};

/// Chunks of a message: a few, so that both CPUs have something to do, not too short, and not longer than L2 likes.
[[nodiscard]] std::uint32_t chunk_of(std::int64_t bytes);

/// The sender's end of one stream.
class OutStream {
 public:
  OutStream(Windows::Memory& window, std::int64_t bytes)
      : window_(&window), bytes_(bytes), chunk_(chunk_of(bytes)), emptied_(window.emptied.load(std::memory_order_relaxed)) {}
  /// Packs what there is room for; true if something was. Errors: malformed (the peer counts what was not sent).
  Result<bool> step(nic::Context& context, const layout::Layout& layout, const std::byte* base);
  [[nodiscard]] bool done() const { return packed_ == bytes_; }
  [[nodiscard]] std::uint32_t chunk() const { return chunk_; }
  [[nodiscard]] Windows::Memory& window() const { return *window_; }

 private:
  Windows::Memory* window_;
  std::int64_t bytes_;
  std::int64_t packed_ = 0;
  std::uint32_t chunk_;
  std::uint64_t emptied_;  // as far as it was looked at
};

/// The receiver's end.
class InStream {
 public:
  /// Errors: malformed (a window that is none).
  static Result<InStream> open(const Channel& channel, const Window& window, std::int64_t bytes);
  /// Unpacks what has come, as far as the layout goes; the rest is dropped. True if something had come. Errors: malformed.
  Result<bool> step(nic::Context& context, const layout::Layout& layout, std::byte* base);
  [[nodiscard]] bool done() const { return taken_ == bytes_; }

 private:
  InStream(Windows::Memory& window, const Window& what, std::int64_t bytes)
      : window_(&window), bytes_(bytes), chunk_(what.chunk), first_(what.first) {}
  Windows::Memory* window_;
  std::int64_t bytes_;
  std::int64_t taken_ = 0;
  std::uint32_t chunk_;
  std::uint64_t first_;
  std::uint64_t chunks_ = 0;  // taken
};

}  // namespace lacuna::protocol
