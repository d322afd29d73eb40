// message_ways: in which ways a message between two ranks that share memory can travel, what each way is expected to
// take there, and which is chosen. A communicator asks before each message and each offer; `lacuna explain` asks the
// same. It hides where the times come from.
//
//   lacuna guide ── measures each way ──▶ sheets (sheet.hpp) ── at a message's bytes and run ──▶ the least: the choice
//                                             ▲                                                       │
//        usual_messages/*.inc: the same sheets, for machines that have no profile          the ways that can be
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lacuna/base/base.hpp"
#include "lacuna/guide/sheet.hpp"
#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::guide {

/// A way. One line in message_ways.cpp says of each its name, what happens, and when it can be. Of two ways that take
/// as long the first is chosen.
enum class MessageWay : std::uint8_t {
  eager,       ///< packed into the channel; neither rank waits for the other
  wide,        ///< a stream through several windows in turn
  narrow,      ///< a stream through a part of one window, over and over
  passed,      ///< a stream whose sender's stores pass the caches by
  direct,      ///< one copy from memory to memory, by both CPUs
  rendezvous,  ///< announced; the receiver chooses one of the methods
};
inline constexpr std::size_t kMessageWays = 6;
[[nodiscard]] std::string_view message_way_name(MessageWay way);
/// What happens, in a few words.
[[nodiscard]] std::string_view message_way_summary(MessageWay way);
/// Errors: invalid_argument (no such way; the message lists them).
base::Result<MessageWay> message_way_from_name(std::string_view name);
/// LACUNA_WAY; nothing: it is not set. Errors: as message_way_from_name().
base::Result<std::optional<MessageWay>> message_way_of_environment();
constexpr bool is_stream(MessageWay way) { return way == MessageWay::wide || way == MessageWay::narrow || way == MessageWay::passed; }

/// A message of the choice.
struct MessageCase {
  Piece piece;
  std::int64_t eager_bytes = usual::kEagerBytes;  ///< that the channel takes, at most
  bool offered = false;                           ///< another library matches it: the channel carries nothing
  bool left_behind = false;                       ///< its sender goes on before its receiver comes
  bool copies = false;                            ///< the system lets a process copy into another one's memory
  bool by_method = false;                         ///< the user forces a method or a path
};
/// Why a message cannot go that way; empty: it can. `forced`: by the user, who wants it for every layout.
[[nodiscard]] std::string_view message_way_refusal(MessageWay way, const MessageCase& what, bool forced = false);

/// Where the times were measured. Eager messages end with what a channel takes; a direct copy is for long runs.
inline constexpr std::array<std::int64_t, 10> kMessageBytes{512,      2 << 10,  4 << 10,   8 << 10, 16 << 10,
                                                            32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
inline constexpr std::array<std::int64_t, 5> kMessageRuns{8, 64, 512, 4 << 10, 64 << 10};
inline constexpr std::size_t kEagerSizes = 5, kFirstDirectSize = 6, kFirstDirectRun = 3;
[[nodiscard]] Axes message_axes(MessageWay way);
static_assert(kMessageBytes.size() * kMessageRuns.size() <= Sheet::kMostCells);

/// The times of the ways on one machine.
class MessagePrices {
 public:
  /// Where nothing was measured.
  static const MessagePrices& usual();

  /// Expected nanoseconds; infinite: the machine that was measured has no such way.
  [[nodiscard]] double ns(MessageWay way, const Piece& piece) const;
  /// The best of those that can be. Each in the table is left only for one further down that is expected to take less
  /// than kGain of its time; eager for wide, less than usual::kWindowGain. Times err by some percent, and those further
  /// down need more of the peer. Messages of less than was measured are eager.
  [[nodiscard]] MessageWay choose(const MessageCase& what) const;
  static constexpr double kGain = 0.95;
  /// All messages of up to so many bytes are eager where that can be, whatever their runs.
  [[nodiscard]] std::int64_t eager_up_to() const;
  /// The quickest of the streams, by which a message goes where no other way can be.
  [[nodiscard]] MessageWay stream(const Piece& piece) const;
  [[nodiscard]] bool measured() const { return measured_; }  ///< false: usual prices

 private:
  friend struct MessageProfile;             // reads them
  static constexpr std::size_t kForms = 2;  // regular, listed
  static MessagePrices make_usual();
  std::array<std::array<Sheet, kMessageWays>, kForms> sheets_{};
  bool measured_ = false;
};

}  // namespace lacuna::guide
