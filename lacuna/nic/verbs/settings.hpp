// What a user sets for all connections of a process, from the environment.
#pragma once

#include <optional>

#include "lacuna/base/base.hpp"

namespace lacuna::nic::verbs {

/// LACUNA_VERBS_PORT; LACUNA_VERBS_GID, an index; LACUNA_VERBS_MTU, in bytes; LACUNA_VERBS_TIMEOUT n, the time between
/// two attempts, 4.096 us * 2^n; LACUNA_VERBS_RETRIES; LACUNA_VERBS_RNR_RETRIES, with a peer that has posted no receive
/// (7: without end); LACUNA_VERBS_ODP=1, on-demand paging instead of pinned pages; LACUNA_VERBS_RELAXED=0, no relaxed
/// ordering.
struct Settings {
  std::optional<int> port, gid, mtu;
  int timeout = 16;  // 0.27 s
  int retries = 6;   // Soft-RoCE takes 7 for ever, as all take it for rnr_retries
  int rnr_retries = 7;
  bool on_demand = false;
  bool relaxed = true;

  /// Errors: invalid_argument, with the variable's name and range.
  static base::Result<Settings> from_environment();
};

}  // namespace lacuna::nic::verbs
