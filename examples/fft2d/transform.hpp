// One rank's part of a two-dimensional transform: its rows, the exchange, its rows of the transpose (the matrix's
// columns), and the exchange back.
#pragma once

#include <fftw3.h>

#include <memory>
#include <span>

#include "examples/fft2d/exchange.hpp"

namespace examples::fft2d {

/// Microseconds of this rank, for one transform.
struct Times {
  double fft = 0;
  Phases exchange;  ///< both
  double whole = 0;
};

/// Weighted sums over all ranks (check.hpp), before and after each exchange.
struct Fingerprints {
  std::uint64_t before[2];
  std::uint64_t after[2];
  [[nodiscard]] bool agree() const { return before[0] == after[0] && before[1] == after[1]; }
};

class Transform {
 public:
  Transform(const Rows& rows, int rank);

  /// This rank's rows of the matrix: the input, and after run() the result.
  [[nodiscard]] std::span<Complex> matrix() { return {matrix_.get(), elements_}; }
  /// All ranks together. Where `sums` is given, the exchanges are looked at, and times mean nothing.
  Times run(Exchange& exchange, Fingerprints* sums = nullptr);

 private:
  struct Free {
    void operator()(Complex* memory) const { fftw_free(memory); }
    void operator()(fftw_plan plan) const { fftw_destroy_plan(plan); }
  };
  using Block = std::unique_ptr<Complex[], Free>;
  static Block allocated(std::size_t elements);
  void transform_rows(Complex* block, Times& times) const;
  void turn(Exchange& exchange, const Block& from, const Block& to, Times& times, int which, Fingerprints* sums) const;

  Rows rows_;
  int rank_;
  std::size_t elements_;
  Block matrix_;
  Block transposed_;
  std::unique_ptr<fftw_plan_s, Free> plan_;
};

}  // namespace examples::fft2d
