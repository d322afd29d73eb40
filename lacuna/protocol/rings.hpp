// rings: how much of a window a stream goes round, learned by doing both now and then.
//
// A window whose lines are soon used again stays in the caches of both CPUs, whatever else the program touches, but each line has to be taken from the
// other CPU's L2 cache before it can be written. In a wide one they come from the L3 cache, or from memory. An EPYC of 2022 wants wide windows (64 KiB:
// 3.2 us instead of 7.9), a Xeon of 2023 narrow ones (1 MiB between other work: 100 us instead of 150).
#pragma once

#include <array>

#include "lacuna/protocol/stream.hpp"

namespace lacuna::protocol {

class Rings {
 public:
  /// For a message that is to be sent now.
  Ring choose(std::int64_t bytes, const layout::Digest& digest);
  /// It goes there.
  void sent(const Windows::Place& place, const OutStream& stream);

 private:
  /// Messages of about one length.
  struct Class {
    Ring ring = Ring::wide;
    int until_trial = 2;  // messages
    // A trial is some pairs of messages that are alike, the first of them narrow and wide in turn.
    int pairs = 0;
    double log_ratios = 0;  // narrow by wide
    bool narrow_first = false;
    bool has_first = false;
    double first_ns = 0;
    std::int64_t bytes = 0;
    layout::Digest digest{};
  };
  /// What is to be known of the message before, once it was received.
  struct Trial {
    Class* of = nullptr;
    Ring ring = Ring::wide;
    const WindowMemory* window = nullptr;  // null: it went elsewhere
    std::uint64_t last = 0;
  };
  void settle();
  static void judge(Class& of, double ns);
  std::array<Class, 3> classes_;
  Trial trial_;
};

}  // namespace lacuna::protocol
