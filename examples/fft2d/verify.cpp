#include "examples/fft2d/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "examples/fft2d/check.hpp"

namespace examples::fft2d {
namespace {

// Up to here every rank transforms the whole matrix by itself (4 MiB), beyond it evaluates single rows.
constexpr int kWhole = 512;

std::vector<Complex> whole_transform(std::uint64_t seed, int n) {
  std::vector<Complex> data(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  auto* memory = reinterpret_cast<fftw_complex*>(data.data());
  fftw_plan plan = fftw_plan_dft_2d(n, n, memory, memory, FFTW_FORWARD, FFTW_ESTIMATE);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = input(seed, n, static_cast<int>(i / static_cast<std::size_t>(n)), static_cast<int>(i % static_cast<std::size_t>(n)));
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  return data;
}

}  // namespace

Verified verify(Transform& transform, Exchange& exchange, const Rows& rows, const Job& job, std::uint64_t seed) {
  const int n = rows.n;
  const int first = rows.first(job.rank());
  const int own = rows.count(job.rank());
  const auto row_of = [&](int row) {
    return transform.matrix().subspan(static_cast<std::size_t>(row) * static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  };
  for (int r = 0; r < own; ++r)
    for (int c = 0; c < n; ++c) row_of(r)[static_cast<std::size_t>(c)] = input(seed, n, first + r, c);
  Fingerprints sums{};
  transform.run(exchange, &sums);

  Verified verified;
  double worst = 0;
  int compared = 0;
  const auto compare = [&](int row, std::span<const Complex> wanted) {
    const double error = relative_error(row_of(row), wanted);
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity()
                              : std::max(worst, error);  // MPI's maximum may pass over what is no number
    ++compared;
  };
  if (n <= kWhole) {
    verified.against = "FFTW's two-dimensional transform";
    const std::vector<Complex> wanted = whole_transform(seed, n);
    for (int r = 0; r < own; ++r)
      compare(r, std::span(wanted).subspan(static_cast<std::size_t>(first + r) * static_cast<std::size_t>(n), static_cast<std::size_t>(n)));
  } else {
    verified.against = "rows evaluated directly";
    for (const int r : {0, own / 2, own - 1}) compare(r, transformed_row(seed, n, first + r));
  }
  verified.rows = static_cast<int>(Job::sum(static_cast<std::uint64_t>(compared)));
  verified.error = Job::largest(worst);
  if (!sums.agree()) throw std::runtime_error("an exchange did not move every element to its place");
  if (!(verified.error <= kMostError)) throw std::runtime_error("a row of the result is off by " + std::to_string(verified.error));
  return verified;
}

}  // namespace examples::fft2d
