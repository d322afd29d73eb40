// The machine as every program that measures tells it: a worker, and the benches. A template, so that each keeps its
// kind of JSON.
#pragma once

#include "lacuna/base/base.hpp"

namespace lacuna::measure {

template <class Json>
Json machine_json(const base::Machine& m) {
  return {{"cpu", m.cpu},
          {"kernel", m.kernel},
          {"cpus", m.cpus},
          {"l1d_bytes", m.l1d_bytes},
          {"l2_bytes", m.l2_bytes},
          {"llc_bytes", m.llc_bytes},
          {"page_bytes", m.page_bytes},
          {"memory_bytes", m.memory_bytes}};
}

}  // namespace lacuna::measure
