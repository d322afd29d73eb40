// stencil2d: Jacobi's iteration on a field that is spread over a grid of ranks. After each step neighbours exchange
// their borders: rows, which are contiguous, and columns, of which every double lies a row away from the next.
//
//   mpirun -n 2 ./stencil2d --variant datatype,native --n 1024 --steps 50
//
// Prints a line of JSON for each variant. Every variant's field is compared with that of one process, bit for bit,
// after all steps.
#include <cstdio>
#include <limits>

#include "examples/common/arguments.hpp"
#include "examples/common/report.hpp"
#include "examples/common/timing.hpp"
#include "examples/stencil2d/halo.hpp"
#include "examples/stencil2d/jacobi.hpp"

using namespace examples;
using namespace examples::stencil2d;

namespace {

// More columns of ranks than rows, where it cannot be even: so that of two ranks' borders the strided ones are
// exchanged.
Block block_of(const Job& job, int n) {
  std::array<int, 2> grid{};
  MPI_Dims_create(job.size(), 2, grid.data());
  const auto [across, down] = grid;
  if (n < across) throw std::invalid_argument("--n: each rank needs a cell");
  const int row = job.rank() / across;
  const int column = job.rank() % across;
  return {share(n, down, row),
          share(n, across, column),
          {row > 0 ? job.rank() - across : -1, row < down - 1 ? job.rank() + across : -1, column > 0 ? job.rank() - 1 : -1,
           column < across - 1 ? job.rank() + 1 : -1}};
}

struct Times {
  std::vector<double> exchange{}, step{};  // of the slowest rank, each step
};

Times iterate(const Block& block, Halo& halo, int steps, std::vector<double>& now) {
  Times times;
  std::vector<double> next = now;
  for (int step = 0; step < steps; ++step) {
    Job::barrier();
    const double start = now_us();
    halo.exchange(now.data());
    const double exchanged = now_us();
    relax(block, now.data(), next.data());
    now.swap(next);
    times.exchange.push_back(Job::largest(exchanged - start));
    times.step.push_back(Job::largest(now_us() - start));
  }
  return times;
}

// What comes from a neighbour is not there before.
void forget_borders(const Block& block, std::vector<double>& field) {
  const std::array<Side, 4> all = sides(block);
  for (std::size_t s = 0; s < all.size(); ++s)
    for (int i = 0; block.neighbours[s] >= 0 && i < (all[s].column ? block.rows.count : block.columns.count); ++i)
      field[all[s].border + static_cast<std::size_t>(i) * (all[s].column ? block.pitch() : 1)] = std::numeric_limits<double>::quiet_NaN();
}

void measure(Job& job, const std::vector<std::string>& variants, int n, int steps) {
  const Block block = block_of(job, n);
  const Block whole{{0, n}, {0, n}, {-1, -1, -1, -1}};
  constexpr std::uint64_t kSeed = 1;
  const std::vector<double> wanted = serial(kSeed, whole, steps);
  for (const std::string& variant : variants) {
    const std::unique_ptr<Halo> halo = make_halo(variant, block, job);
    std::vector<double> field = initial_field(kSeed, block);
    forget_borders(block, field);
    const Times times = iterate(block, *halo, steps, field);
    const std::uint64_t wrong = Job::sum(differences(block, field, whole, wanted));
    if (wrong != 0) throw std::runtime_error(variant + ": " + std::to_string(wrong) + " cells are not those of one process");
    if (job.rank() != 0) continue;
    Report us;
    us.add("exchange", median(times.exchange)).add("step", median(times.step));
    Report checked;
    checked.add("against", "one process, bit for bit").add("cells", static_cast<long>(n) * n);
    Report all;
    all.add("application", "stencil2d").add("variant", variant).add("n", n).add("ranks", job.size()).add("repetitions", steps);
    all.add("mpi", Job::mpi()).add("send_in", Job::send_in()).add("us", us).add("verified", checked).print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Job job(&argc, &argv);
  try {
    const Arguments arguments(argc, argv, {"variant", "n", "steps"});
    measure(job, arguments.words("variant", "datatype,native"), arguments.number("n", 1024), arguments.number("steps", 50));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stencil2d: rank %d: %s\n", job.rank(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
