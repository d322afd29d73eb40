// transits: how the bytes of a stream travel, learned by trying all of it now and then (lacuna/guide/trial.hpp).
//
// A narrow ring, whose lines are soon used again, stays in the caches of both CPUs, whatever else the program touches;
// but each line has to be taken from the other CPU's L2 cache before it can be written. In a wide ring lines come from
// the L3 cache, or from memory. An EPYC of 2022 is faster with wide rings (64 KiB: 3.2 us instead of 7.9), a Xeon of
// 2023 with narrow ones (1 MiB between other work: 100 us instead of 150). Direct copies gain where blocks are long (1
// MiB in blocks of 64 KiB on that Xeon: 54 to 65 us instead of 96 to 107). The guide says which is tried first.
#pragma once

#include <array>
#include <memory>

#include "lacuna/guide/trial.hpp"
#include "lacuna/protocol/stream/out_stream.hpp"

namespace lacuna::protocol {

/// What the guide expects of a direct copy.
enum class Advice : std::uint8_t {
  impossible,  ///< or not worth a trial
  two_copies,  ///< slower than packing and unpacking
  one_copy,    ///< faster
};

class Transits {
 public:
  /// For a message that is to be sent now. `run`: of its layout, on average; long ones are judged apart. `ring`: which
  /// of the two rings is expected to be faster.
  Transit choose(std::int64_t bytes, const layout::Digest& digest, Advice advice = Advice::impossible, std::int64_t run = 0,
                 Transit ring = Transit::wide);
  /// The message goes through this ring.
  void sent(const StreamRing& ring, const OutStream& stream);
  /// Whether the message that was offered directly was taken so.
  void offered(bool taken);

 private:
  /// Messages of about one length, of runs of about one length, and of one advice.
  struct Class {
    Transit best = Transit::wide;
    Transit other = Transit::narrow;
    Advice advice = Advice::impossible;
    bool begun = false;
    int until_trial = 2;  // messages
    int in_vain = 0;      // direct offers, one after another
    int trials = 0;       // that came to their end
    // A trial is some pairs of messages that are alike.
    guide::PairedTrial pairs{false};
    guide::LogRatios ratios;
    guide::TrialBudget budget;  // messages, since the last pause
    int others = 0;             // messages of this pair that went the other way
    double excess = 0;          // of each of them in the last pair
    int broken = 0;             // pairs, since one came to its end
    std::int64_t bytes = 0;
    layout::Digest digest{};

    void next_other();
    [[nodiscard]] int before_trial(int soon) const;
    [[nodiscard]] int warming() const;
    void time(double ns);
    void judge(double log_ratio);
    void end(bool pause);  // a trial
    void break_off();      // a pair
  };
  /// What has to be known of the last message that is timed, once it was received.
  struct Timed {
    Class* of = nullptr;
    Transit transit = Transit::wide;
    const RingMemory* ring = nullptr;  // null: it went elsewhere
    std::uint64_t last = 0;
  };
  void settle();
  [[nodiscard]] Transit best_ring(std::size_t length, Transit expected) const;
  using Classes = std::array<std::array<std::array<Class, 2>, 3>, 3>;
  std::unique_ptr<Classes> classes_;  // null: nothing was sent yet
  Class* last_ = nullptr;
  Timed timed_;
};

}  // namespace lacuna::protocol
