// transits: how the bytes of a stream travel, learned by doing all of it now and then.
//
// A window whose lines are soon used again stays in the caches of both CPUs, whatever else the program touches, but each line has to be taken from the
// other CPU's L2 cache before it can be written. In a wide one they come from the L3 cache, or from memory. An EPYC of 2022 wants wide windows (64 KiB:
// 3.2 us instead of 7.9), a Xeon of 2023 narrow ones (1 MiB between other work: 100 us instead of 150). Direct copies gain where blocks are long (1 MiB in
// blocks of 64 KiB on that Xeon: 54 to 65 us instead of 96 to 107). Which is first, the guide says.
#pragma once

#include <array>

#include "lacuna/protocol/stream/out_stream.hpp"

namespace lacuna::protocol {

/// What the guide thinks of one copy.
enum class Advice : std::uint8_t {
  impossible,  ///< or not worth a trial
  two_copies,
  one_copy,
};

class Transits {
 public:
  /// For a message that is to be sent now. `run`: of its layout, on average; long ones are judged apart.
  Transit choose(std::int64_t bytes, const layout::Digest& digest, Advice advice = Advice::impossible, std::int64_t run = 0);
  /// It goes there.
  void sent(const StreamRing& ring, const OutStream& stream);
  /// Whether the message that was offered directly was taken so.
  void offered(bool taken);

 private:
  /// Messages of about one length, of runs of about one length, and of one advice.
  struct Class {
    Transit best = Transit::wide;
    Transit other = Transit::narrow;
    bool begun = false;
    int until_trial = 2;  // messages
    int in_vain = 0;      // direct offers, one after another
    int trials = 0;       // that came to their end
    // A trial is some pairs of messages that are alike, the other way first and second in turn.
    int pairs = 0;
    double log_ratios = 0;  // other by best
    double cost = 0;        // since the last pause, in messages: what the other way took beyond the best
    int others = 0;         // messages of this pair that went the other way
    double excess = 0;      // of one of the last pair
    bool other_first = false;
    int broken = 0;  // pairs, since one came to its end
    int warm = 0;    // messages of this half of a pair, which do not count
    bool has_first = false;
    double first_ns = 0;
    std::int64_t bytes = 0;
    layout::Digest digest{};
    Advice advice = Advice::impossible;

    void next_other();
    void judge(double log_ratio);
    void time(double ns);
    void end(bool pause);  // a trial
    void break_off();      // a pair
  };
  /// What is to be known of the message before, once it was received.
  struct Trial {
    Class* of = nullptr;
    Transit transit = Transit::wide;
    const RingMemory* ring = nullptr;  // null: it went elsewhere
    std::uint64_t last = 0;
  };
  void settle();
  [[nodiscard]] Transit best_ring(std::size_t length) const;
  std::array<std::array<std::array<Class, 2>, 3>, 3> classes_;
  Class* last_ = nullptr;
  Trial trial_;
};

}  // namespace lacuna::protocol
