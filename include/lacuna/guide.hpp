// lacuna::Guide: which way is best, and why. Include lacuna.hpp.
#ifndef LACUNA_GUIDE_HPP
#define LACUNA_GUIDE_HPP

#include <cstddef>
#include <memory>
#include <string>

#include "error.hpp"
#include "layout.hpp"

namespace lacuna {

using Choice = lacuna_choice;        // method, path, notify; latency_us, cpu_us[2]
using Placement = lacuna_placement;  // all 0: memory that Lacuna allocated, in a cache, lowest latency
enum class Objective { latency = LACUNA_LATENCY, bandwidth = LACUNA_BANDWIDTH, cpu = LACUNA_CPU };

/// Chooses by the profile that `lacuna guide` wrote, or else by the usual prices. Belongs to one thread at a time.
class Guide {
 public:
  /// nic: "local", "verbs", "model:PLATFORM". message_us: what a message of 16 KiB takes to the peer, one way; 0 if
  /// that is not known. Errors: INVALID_ARGUMENT (LACUNA_METHOD or LACUNA_PATH name none), UNSUPPORTED (no such NIC).
  explicit Guide(const std::string& nic = "local", double message_us = 0) {
    lacuna_guide* guide = nullptr;
    detail::check(lacuna_guide_open(nic.c_str(), message_us, &guide));
    handle_.reset(guide);
  }
  /// The best way to move src into dst. Remembered: asking again is cheap. Errors: INVALID_ARGUMENT (the sizes
  /// differ), UNSUPPORTED (nothing can move it; the message says why each cannot).
  Choice choose(const Layout& src, const Layout& dst, Objective objective = Objective::latency) {
    return choose(src, dst, placed(objective));
  }
  Choice choose(const Layout& src, const Layout& dst, const Placement& placement) {
    Choice choice{};
    detail::check(lacuna_guide_choose_placed(handle_.get(), src.get(), dst.get(), &placement, &choice));
    return choice;
  }
  /// Why: every way with its stages, what it lost by and where it would win. Lines of text. Errors: as choose().
  [[nodiscard]] std::string explain(const Layout& src, const Layout& dst, Objective objective = Objective::latency) const {
    return explain(src, dst, placed(objective));
  }
  [[nodiscard]] std::string explain(const Layout& src, const Layout& dst, const Placement& placement) const {
    return detail::text_of([&](char* text, std::size_t size) {
      std::size_t needed = 0;
      detail::check(lacuna_guide_explain_placed(handle_.get(), src.get(), dst.get(), &placement, text, size, &needed));
      return needed;
    });
  }

 private:
  static Placement placed(Objective objective) {
    Placement placement{};
    placement.objective = static_cast<int>(objective);
    return placement;
  }
  std::unique_ptr<lacuna_guide, detail::Free> handle_;
};

}  // namespace lacuna

#endif
