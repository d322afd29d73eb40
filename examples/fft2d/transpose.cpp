#include "examples/fft2d/transpose.hpp"

#include <algorithm>

namespace examples::fft2d {
namespace {

// A column of a square lies in 48 cache lines, which hold the next three columns as well; of each row that is written
// twelve lines are whole. By CPU time, squares of 32, 48 and 64 elements were faster than smaller ones, strips, and two
// levels of them, for n = 1000 to 4096 and pitches that are powers of two or not; those of 48 most often the fastest (a
// Xeon with 48 KiB of L1 and 2 MiB of L2 cache).
constexpr int kTile = 48;

}  // namespace

void pack(const Complex* from, std::size_t pitch, int rows, int columns, Complex* out) {
  for (int r = 0; r < rows; ++r) out = std::copy_n(from + static_cast<std::size_t>(r) * pitch, columns, out);
}

void transpose(const Complex* __restrict from, std::size_t from_pitch, int rows, int columns, Complex* __restrict to,
               std::size_t to_pitch) {
  for (int top = 0; top < rows; top += kTile) {
    const int bottom = std::min(rows, top + kTile);
    for (int left = 0; left < columns; left += kTile) {
      const int right = std::min(columns, left + kTile);
      for (int c = left; c < right; ++c)
        for (int r = top; r < bottom; ++r)
          to[static_cast<std::size_t>(c) * to_pitch + static_cast<std::size_t>(r)] =
              from[static_cast<std::size_t>(r) * from_pitch + static_cast<std::size_t>(c)];
    }
  }
}

}  // namespace examples::fft2d
