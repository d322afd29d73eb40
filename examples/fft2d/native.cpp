// The exchange by Lacuna: a transpose of the distributed matrix. No buffer, no loop: each rank's block goes from where
// it lies to where it belongs.
#include "examples/common/timing.hpp"
#include "examples/fft2d/exchange.hpp"

namespace examples::fft2d {
namespace {

class Native : public Exchange {
 public:
  Native(const Rows& rows, Job& job) : ranks_(job.lacuna()) {
    for (int rank = 0; rank < rows.ranks; ++rank) blocks_.push_back(rows.count(rank));
    matrix_ = {.rows = rows.n,
               .columns = rows.n,
               .element_bytes = sizeof(Complex),
               .row_blocks = blocks_.data(),
               .column_blocks = blocks_.data(),
               .leading_before = 0,
               .leading_after = 0};
  }

  // Made once for each pair of arrays, and started again and again.
  Phases run(const Complex* from, Complex* to) override {
    for (Made& one : made_) {
      if (one.from == from && one.to == to) return moved(one.exchange);
    }
    made_.push_back({from, to, ranks_.transpose_init(matrix_, from, to)});
    return moved(made_.back().exchange);
  }

 private:
  struct Made {
    const Complex* from;
    Complex* to;
    lacuna::Exchange exchange;
  };
  static Phases moved(lacuna::Exchange& exchange) {
    const double start = now_us();
    exchange.start();
    exchange.wait();
    return {.packing = 0, .communication = now_us() - start};
  }

  lacuna::Communicator& ranks_;
  std::vector<std::int64_t> blocks_;
  lacuna::Matrix matrix_{};
  std::vector<Made> made_;
};

}  // namespace

std::unique_ptr<Exchange> make_native(const Rows& rows, Job& job) { return std::make_unique<Native>(rows, job); }

}  // namespace examples::fft2d
