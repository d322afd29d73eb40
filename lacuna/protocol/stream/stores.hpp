// stores: how this CPU writes memory that a peer's CPU reads, learned by trying both ways now and then
// (lacuna/guide/trial.hpp).
//
// Plain stores leave lines in this CPU's caches, and the other CPU fetches them from there. But a line has to be taken
// from the CPU that read it last before it can be written again. On an EPYC of 2022 that costs next to nothing where
// both CPUs have one L3 cache, and 27 ns for each line where they have not; stores that pass the caches by cost 2 ns
// anywhere, and the reader some 2.5 ns more, because the lines are in memory only. A VM's CPUs may come to be the one
// or the other from one second to the next.
#pragma once

#include "lacuna/guide/trial.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::protocol {

class Stores {
 public:
  /// Packs, by whichever stores the peer has the bytes from sooner.
  void pack(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t bytes,
            std::byte* to);
  /// Whether a piece that took so long by either stores says that passing the caches by is better, for both ends.
  [[nodiscard]] static bool passing_pays(double kept_ns, double passed_ns, std::int64_t bytes);
  [[nodiscard]] copy::Caching caching() const { return caching_; }
  /// Begins with these, as long as no trial has said what is better.
  void suggest(copy::Caching caching) {
    if (!judged_ && !held_) caching_ = caching;
  }
  /// Goes by these, without trials.
  void hold(copy::Caching caching) {
    caching_ = caching;
    held_ = true;
  }

 private:
  static std::int64_t timed(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position,
                            std::int64_t bytes, std::byte* to, copy::Caching caching);
  void judge(double kept_ns, double passed_ns, std::int64_t bytes);

  copy::Caching caching_ = copy::Caching::kept;
  bool held_ = false;
  bool judged_ = false;              // a trial came to its end
  int votes_ = 0;                    // for the other stores, one after another
  int until_trial_ = 2;              // pieces
  guide::PairedTrial pairs_{false};  // the other way: stores that pass the caches by
  // The first half of a pair whose second is to come.
  std::int64_t first_bytes_ = 0;
  const layout::Layout* first_layout_ = nullptr;
};

}  // namespace lacuna::protocol
