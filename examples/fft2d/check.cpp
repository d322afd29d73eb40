#include "examples/fft2d/check.hpp"

#include <bit>
#include <cmath>
#include <numbers>

namespace examples::fft2d {
namespace {

// SplitMix64's finalizer (Steele, Lea, Flood, 2014): every bit of the result depends on every bit of x.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t place(int n, int row, int column) {
  return static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(n) + static_cast<std::uint64_t>(column);
}

double centred(std::uint64_t bits32) { return static_cast<double>(bits32) * 0x1p-32 - 0.5; }

std::vector<Complex> roots_of_unity(int n) {
  std::vector<Complex> roots;
  roots.reserve(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k) roots.push_back(std::polar(1.0, -2 * std::numbers::pi * k / n));
  return roots;
}

}  // namespace

Complex input(std::uint64_t seed, int n, int row, int column) {
  const std::uint64_t bits = mixed(mixed(seed) ^ place(n, row, column));
  return {centred(bits >> 32), centred(bits & 0xffffffffU)};
}

std::uint64_t fingerprint(std::span<const Complex> block, int first, int n, Order order) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const int row = first + static_cast<int>(i / static_cast<std::size_t>(n));
    const int column = static_cast<int>(i % static_cast<std::size_t>(n));
    const std::uint64_t where = mixed(order == Order::rows ? place(n, row, column) : place(n, column, row));
    sum += std::bit_cast<std::uint64_t>(block[i].real()) * where + std::bit_cast<std::uint64_t>(block[i].imag()) * mixed(where);
  }
  return sum;
}

std::vector<Complex> transformed_row(std::uint64_t seed, int n, int row) {
  const std::vector<Complex> roots = roots_of_unity(n);
  const auto root = [&](int a, int b) { return roots[static_cast<std::size_t>(static_cast<std::int64_t>(a) * b % n)]; };
  std::vector<Complex> by_column(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    const Complex factor = root(row, r);
    for (int c = 0; c < n; ++c) by_column[static_cast<std::size_t>(c)] += input(seed, n, r, c) * factor;
  }
  std::vector<Complex> out(static_cast<std::size_t>(n));
  for (int v = 0; v < n; ++v)
    for (int c = 0; c < n; ++c) out[static_cast<std::size_t>(v)] += by_column[static_cast<std::size_t>(c)] * root(v, c);
  return out;
}

double relative_error(std::span<const Complex> got, std::span<const Complex> wanted) {
  double off = 0;
  double all = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    off += std::norm(got[i] - wanted[i]);
    all += std::norm(wanted[i]);
  }
  return std::sqrt(off / all);
}

}  // namespace examples::fft2d
