// copies: what packing and unpacking cost the simulated CPU, by block size, gap, and where the bytes are. Nothing is
// measured here: what this machine's copies take has no part in virtual time.
#pragma once

#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/model/profile.hpp"

namespace lacuna::nic::model {

/// Bytes moved as `blocks` blocks with `gap` bytes between two of them, on one side dense; `footprint`: of all that the
/// layout's whole copy touches.
struct Copy {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t gap = 0;
  std::int64_t footprint = 0;
};
/// Of a fragment of `length` bytes: blocks in proportion.
[[nodiscard]] Copy copy_of(const layout::Layout& layout, std::int64_t length);
[[nodiscard]] Time copy_time(const Profile& profile, const Copy& copy);

}  // namespace lacuna::nic::model
