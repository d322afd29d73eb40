// faces3d: boxes of cells that exchange their borders with 26 neighbours, as codes on three-dimensional grids do after
// each step. Faces across z are nearly contiguous, those across y are rows, those across x single doubles; edges and
// corners are small.
//
//   mpirun -n 2 ./faces3d --variant datatype,native --n 64
//
// Prints a line of JSON for each variant. The field is periodic, and each cell of it, borders too, is compared with
// what it must hold.
#include <cstdio>

#include "examples/common/arguments.hpp"
#include "examples/common/report.hpp"
#include "examples/common/timing.hpp"
#include "examples/faces3d/check.hpp"
#include "examples/faces3d/exchange.hpp"

using namespace examples;
using namespace examples::faces3d;

namespace {

// No two axes have as many cells, so that none can be taken for another. Two ranks are neighbours across x, the hardest
// faces.
Box box_of(const Job& job, int n) {
  Triple dims{};
  MPI_Dims_create(job.size(), 3, dims.data());
  const Triple grid{dims[2], dims[1], dims[0]};
  return {{n, n + 1, n + 2}, grid, {job.rank() / (grid[1] * grid[2]), job.rank() / grid[2] % grid[1], job.rank() % grid[2]}};
}

void verify(const Box& box, Exchange& exchange, const std::string& variant, int round, std::vector<double>& field) {
  fill(box, round, field);
  exchange.run(field.data());
  const std::uint64_t wrong = Job::sum(wrong_cells(box, round, field));
  if (wrong != 0) throw std::runtime_error(variant + ": " + std::to_string(wrong) + " cells do not hold what they must");
}

void measure(Job& job, const std::vector<std::string>& variants, int n, int repetitions) {
  const Box box = box_of(job, n);
  std::vector<double> field(box.all());
  for (const std::string& variant : variants) {
    const std::unique_ptr<Exchange> exchange = make_exchange(variant, box, job);
    verify(box, *exchange, variant, 1, field);
    std::vector<double> times;
    for (int i = 0; i < repetitions; ++i) {
      Job::barrier();
      const double start = now_us();
      exchange->run(field.data());
      times.push_back(Job::largest(now_us() - start));
    }
    verify(box, *exchange, variant, 2, field);
    const std::uint64_t cells = Job::sum(box.all());
    if (job.rank() != 0) continue;
    Report us;
    us.add("exchange", median(times));
    Report checked;
    checked.add("against", "what each cell must hold").add("cells", cells);
    Report all;
    all.add("application", "faces3d").add("variant", variant).add("n", n).add("ranks", job.size()).add("repetitions", repetitions);
    all.add("mpi", Job::mpi()).add("send_in", Job::send_in()).add("us", us).add("verified", checked).print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv);
  try {
    const Arguments arguments(argc, argv, {"variant", "n", "repetitions"});
    measure(job, arguments.words("variant", "datatype,native"), arguments.number("n", 64), arguments.number("repetitions", 50));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faces3d: rank %d: %s\n", job.rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
