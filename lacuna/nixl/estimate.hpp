// estimate: how long a transfer is expected to take, and whether this end moves a part alone. It hides whether the
// guide has prices of messages or of methods for it, and whether this machine was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/nixl/parts.hpp"

namespace lacuna::nixl {

struct Estimate {
  double ns = 0;
  double margin_ns = 0;  ///< that it may be wrong by
};

/// What a peer's transfers cost. Belongs to one thread at a time.
class Estimator {
 public:
  /// `direct`: the path by which this end reaches the peer's memory alone.
  Estimator(const nic::Context& context, std::optional<nic::Path> direct);

  /// Sets Part::direct: whichever is expected to take less. A part is directed to the peer's memory by this end alone
  /// only if `possible`. Errors: those of guide::Guide::choose().
  Result<void> decide(Part& part, bool puts, bool possible);
  /// What parts that are decided take, one after the other. Errors: those of guide::Guide::choose().
  Result<Estimate> of(const std::vector<Part>& parts, bool puts);

 private:
  Result<Estimate> by_access(const Layout& src, const Layout& dst);
  [[nodiscard]] Estimate by_message(const Layout& src, const Layout& dst) const;
  Result<Estimate> alone(const Layout& src, const Layout& dst) const;
  [[nodiscard]] double margin(nic::Path path) const;

  std::optional<nic::Path> direct_;
  bool shares_memory_;
  guide::Guide guide_;
  const guide::PeerClass& peer_;
};

}  // namespace lacuna::nixl
