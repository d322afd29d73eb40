// Packing and unpacking by hand: the loops that an exchange without datatypes needs.
#pragma once

#include <cstddef>

#include "examples/fft2d/matrix.hpp"

namespace examples::fft2d {

/// `rows` pieces of `columns` elements, `pitch` elements apart, one behind the other.
void pack(const Complex* from, std::size_t pitch, int rows, int columns, Complex* out);

/// to[c * to_pitch + r] = from[r * from_pitch + c] for all rows r and columns c of `from`.
void transpose(const Complex* from, std::size_t from_pitch, int rows, int columns, Complex* to, std::size_t to_pitch);

}  // namespace examples::fft2d
