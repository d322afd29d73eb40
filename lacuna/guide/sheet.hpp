// sheet: measured times of one way, by bytes and run length, and what they say of pieces in between. The ways of an
// MPI's data (mpi_ways.hpp) and of messages (message_ways.hpp) have one for each form of their runs. It hides the
// interpolation.
//
//   bytes    512 ┌────┬────┐        between two run lengths linear in the number of runs: a call, and so much for each
//           2048 ├────┼────┤        run; between two sizes logarithm by logarithm; beyond the last one by the bytes
//                8   64  512  run
//
// Two sizes less than a factor of two apart enclose a step: an MPI's short messages end between them, at a size that
// is not known. If a time grows more than the bytes there, it is taken to grow as the bytes up to the second size, and
// to jump then.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lacuna/layout/layout.hpp"

namespace lacuna::guide {

/// What the time of a way depends on.
struct Piece {
  std::int64_t bytes = 0;  ///< of the message, or of a collective's block
  std::int64_t run = 0;    ///< bytes of a run, on average
  bool listed = false;     ///< most runs lie at places from a list
  bool operator==(const Piece&) const = default;
  /// Of `count` elements of a layout.
  static Piece of(const layout::Layout& element, std::int64_t count);
};

/// Where the times of a sheet were measured. Both ascend; a cell is a size and a run length.
struct Axes {
  std::span<const std::int64_t> bytes, runs;
  std::int64_t fewest_runs = 1;  ///< of a cell: there is none of fewer

  [[nodiscard]] constexpr std::size_t size() const { return bytes.size() * runs.size(); }
  [[nodiscard]] constexpr bool has_cell(std::size_t at) const { return fewest_runs * runs[at % runs.size()] <= bytes[at / runs.size()]; }
};

/// Where a piece lies among the cells of axes. Sheets with the same axes share it.
class SheetPlace {
 public:
  SheetPlace(const Axes& axes, const Piece& piece);

 private:
  friend class Sheet;
  struct Between {
    std::size_t at = 0;
    double share = 0;     // of the next one
    double beyond = 0;    // log2 of the times that the piece is larger than this one,
    double distance = 0;  // and that the next one is
  };
  [[nodiscard]] static Between between_runs(std::span<const std::int64_t> runs, std::int64_t run);
  [[nodiscard]] static Between between_sizes(std::span<const std::int64_t> sizes, std::int64_t bytes);
  std::size_t columns_;
  Between bytes_, run_;
  double beyond_;  // log2 of the times that the piece is larger than the largest cell
};

class Sheet {
 public:
  static constexpr std::size_t kMostCells = 64;

  Sheet() = default;
  /// Nanoseconds by bytes, then runs; 0 where the axes have no cell. As many as the axes have places, kMostCells at
  /// most.
  explicit Sheet(std::span<const double> ns);
  [[nodiscard]] bool measured() const { return ns_[0] > 0; }
  /// Expected nanoseconds, as a logarithm to base 2.
  [[nodiscard]] double log_ns(const SheetPlace& place) const;

 private:
  std::array<float, kMostCells> ns_{};
};

}  // namespace lacuna::guide
