// program: pairs of layouts as parts and tables of kernel.hpp. It hides how two forms become one nest of loops.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lacuna/device/device.hpp"
#include "lacuna/device/kernel.hpp"

namespace lacuna::device {

/// Parts of one way: a launch.
struct Group {
  kernel::Way way{};
  std::size_t first = 0;  ///< among the program's parts
  std::size_t count = 0;
  std::uint32_t tiles = 0;
};

struct Program {
  std::vector<kernel::Part> parts;  ///< of one way after those of another
  std::vector<Group> groups;
  std::vector<std::uint64_t> tables;
};

/// Where the ways part, and how transposes are tiled. Measured (docs/notes/device.md).
struct Tuning {
  /// Bytes of a run from which on windows are faster, for words of 1, 2, 4, 8
  std::int64_t window_run[4] = {64, 128, 1 << 30, 1 << 30};
  /// Of both sides of a transpose's tile, where squares cannot be
  std::int64_t tile_bytes = 64;
  bool squares = true;
  int processors = 132;  ///< of the device
};

/// Errors: as CopyPlan::make().
[[nodiscard]] base::Result<Program> compile(std::span<const Pair> pairs, std::int64_t alignment, const Tuning& tuning);

/// CopyPlan::make() with another tuning: for measurements.
[[nodiscard]] base::Result<CopyPlan> make_plan(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment,
                                               const Tuning& tuning);

/// A part in words.
[[nodiscard]] std::string describe(const kernel::Part& part);

}  // namespace lacuna::device
