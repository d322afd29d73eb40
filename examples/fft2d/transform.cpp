#include "examples/fft2d/transform.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "examples/common/timing.hpp"
#include "examples/fft2d/check.hpp"

namespace examples::fft2d {
namespace {

constexpr double kPlanningSeconds = 2;

// The same memory, by FFTW's documentation
fftw_complex* as_fftw(Complex* data) { return reinterpret_cast<fftw_complex*>(data); }

}  // namespace

Transform::Block Transform::allocated(std::size_t elements) {
  auto* memory = static_cast<Complex*>(fftw_malloc(elements * sizeof(Complex)));
  if (memory == nullptr) throw std::bad_alloc();
  return Block(memory);
}

Transform::Transform(const Rows& rows, int rank)
    : rows_(rows), rank_(rank), elements_(rows.elements(rank)), matrix_(allocated(elements_)), transposed_(allocated(elements_)) {
  // FFTW tries what is fastest here; each row by itself, in place. It writes to the block as it tries.
  fftw_set_timelimit(kPlanningSeconds);
  plan_.reset(fftw_plan_many_dft(1, &rows.n, rows.count(rank), as_fftw(matrix_.get()), nullptr, 1, rows.n, as_fftw(matrix_.get()), nullptr,
                                 1, rows.n, FFTW_FORWARD, FFTW_MEASURE));
  if (plan_ == nullptr) throw std::bad_alloc();
}

Times Transform::run(Exchange& exchange, Fingerprints* sums) {
  // What an exchange leaves out stays not a number.
  if (sums != nullptr) std::fill_n(transposed_.get(), elements_, Complex(std::numeric_limits<double>::quiet_NaN(), 0));
  Times times;
  Job::barrier();
  const double start = now_us();
  transform_rows(matrix_.get(), times);
  turn(exchange, matrix_, transposed_, times, 0, sums);
  transform_rows(transposed_.get(), times);
  if (sums != nullptr) std::fill_n(matrix_.get(), elements_, Complex(std::numeric_limits<double>::quiet_NaN(), 0));
  turn(exchange, transposed_, matrix_, times, 1, sums);
  times.whole = now_us() - start;
  return times;
}

void Transform::transform_rows(Complex* block, Times& times) const {
  const double start = now_us();
  fftw_execute_dft(plan_.get(), as_fftw(block), as_fftw(block));
  times.fft += now_us() - start;
}

// Ranks begin it together: how long one waited for another's transform is not the exchange's.
void Transform::turn(Exchange& exchange, const Block& from, const Block& to, Times& times, int which, Fingerprints* sums) const {
  const auto sum_of = [&](const Block& block, Order order) {
    return Job::sum(fingerprint({block.get(), elements_}, rows_.first(rank_), rows_.n, order));
  };
  if (sums != nullptr) sums->before[which] = sum_of(from, Order::rows);
  Job::barrier();
  const Phases phases = exchange.run(from.get(), to.get());
  times.exchange.packing += phases.packing;
  times.exchange.communication += phases.communication;
  if (sums != nullptr) sums->after[which] = sum_of(to, Order::transposed);
}

}  // namespace examples::fft2d
