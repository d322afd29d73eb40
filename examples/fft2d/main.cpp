// fft2d: the Fourier transform of a matrix that is spread over ranks by rows. Between its two halves the matrix has to
// be transposed across all ranks, which is what is measured here: packed by hand, by MPI's datatypes on one side or
// both, or by Lacuna.
//
//   mpirun -n 2 ./fft2d --variant none,both,native --n 2048
//
// Prints a line of JSON for each n and variant. Variants take turns, transform by transform, so that whatever the
// machine does meets all alike.
#include <cstdio>

#include "examples/common/arguments.hpp"
#include "examples/common/report.hpp"
#include "examples/common/timing.hpp"
#include "examples/fft2d/verify.hpp"

using namespace examples;
using namespace examples::fft2d;

namespace {

constexpr int kFewest = 3;  // transforms that are timed at least

struct Contender {
  std::string name;
  std::unique_ptr<Exchange> exchange;
  Verified verified{};
  std::vector<double> fft{}, packing{}, communication{}, exchanging{}, whole{};
  double spent = 0;

  // The slowest rank's, of each.
  void add(const Times& times) {
    fft.push_back(Job::largest(times.fft));
    packing.push_back(Job::largest(times.exchange.packing));
    communication.push_back(Job::largest(times.exchange.communication));
    exchanging.push_back(Job::largest(times.exchange.packing + times.exchange.communication));
    whole.push_back(Job::largest(times.whole));
    spent += whole.back();
  }
  [[nodiscard]] Report report(const Rows& rows) const {
    Report us;
    us.add("fft", median(fft)).add("packing", median(packing)).add("communication", median(communication));
    us.add("exchange", median(exchanging)).add("whole", median(whole));
    Report checked;
    checked.add("against", verified.against).add("rows", verified.rows).add("error", verified.error);
    Report all;
    all.add("application", "fft2d").add("variant", name).add("n", rows.n).add("ranks", rows.ranks).add("repetitions", whole.size());
    all.add("mpi", Job::mpi()).add("send_in", Job::send_in()).add("us", us).add("exchanges_us", exchanging).add("verified", checked);
    return all;
  }
};

// Results grow by n with each transform, and must not overflow.
void scale(std::span<Complex> matrix, int n) {
  for (Complex& value : matrix) value /= n;
}

void measure(Job& job, const Rows& rows, const std::vector<std::string>& variants, int repetitions, double seconds) {
  Transform transform(rows, job.rank());
  std::vector<Contender> contenders;
  contenders.reserve(variants.size());
  for (const std::string& name : variants) contenders.push_back({name, make_exchange(name, rows, job)});
  for (Contender& one : contenders) verify(transform, *one.exchange, rows, job, 1);
  bool going = true;
  for (int done = 0; going && done < repetitions; ++done) {
    going = false;
    for (Contender& one : contenders) {
      if (done >= kFewest && one.spent > seconds * 1e6) continue;  // the same in all ranks: maxima
      one.add(transform.run(*one.exchange));
      scale(transform.matrix(), rows.n);
      going = true;
    }
  }
  for (Contender& one : contenders) one.verified = verify(transform, *one.exchange, rows, job, 2);
  if (job.rank() == 0)
    for (const Contender& one : contenders) one.report(rows).print();
}

void run(Job& job, int argc, char** argv) {
  const Arguments arguments(argc, argv, {"variant", "n", "repetitions", "seconds"});
  const std::vector<std::string> variants = arguments.words("variant", "none,send,recv,both,native");
  const int repetitions = arguments.number("repetitions", 15);
  const double seconds = arguments.number("seconds", 20);  // of a variant
  for (const int n : arguments.numbers("n", "2048")) {
    if (n < job.size()) throw std::invalid_argument("--n: each rank needs a row");
    measure(job, {n, job.size()}, variants, repetitions, seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv);
  try {
    run(job, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fft2d: rank %d: %s\n", job.rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
