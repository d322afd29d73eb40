// A layout spelled out by its cursor, in the terms of the naive typemap.
#pragma once

#include <ostream>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::layout {

// How GoogleTest prints them.
inline void PrintTo(const Run& run, std::ostream* out) { *out << run.length << " B at " << run.offset; }
inline void PrintTo(const Piece& piece, std::ostream* out) { *out << piece.length << " B from " << piece.src << " to " << piece.dst; }
inline void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.describe(); }

}  // namespace lacuna::layout

namespace lacuna::support {

inline std::vector<layout::Run> runs_of(const layout::Layout& layout) {
  std::vector<layout::Run> runs;
  for (layout::Cursor cursor(layout); !cursor.done();) runs.push_back(cursor.next_run(layout::kMaxBytes));
  return runs;
}

}  // namespace lacuna::support
