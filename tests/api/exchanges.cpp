// with WRONG: (invalid conversion from|cannot initialize)
// What all ranks do together, as a program of a user has it.
#include <array>
#include <lacuna.hpp>
#include <vector>

int main() {
  auto ranks = lacuna::Communicator::connect("job", {.size = 2});
  std::vector<double> out(16), in(16);
  const lacuna::Layout half = lacuna::Layout::bytes(64);
  const std::array sends{lacuna::Outgoing{0, out.data(), &half}, lacuna::Outgoing{1, out.data() + 8, &half}};
#ifdef WRONG  // const memory is not received into
  const std::vector<double>& there = out;
  const std::array receives{lacuna::Incoming{0, there.data(), &half}, lacuna::Incoming{1, there.data() + 8, &half}};
#else
  const std::array receives{lacuna::Incoming{0, in.data(), &half}, lacuna::Incoming{1, in.data() + 8, &half}};
#endif
  ranks.alltoallw(sends, receives);
  ranks.neighbor_exchange(sends, receives, {.schedule = "at_once"});
  lacuna::Matrix matrix{};
  matrix.rows = matrix.columns = 4;
  matrix.element_bytes = 8;
  ranks.transpose(matrix, out.data(), in.data());
  lacuna::Exchange again = ranks.alltoallw_init(sends, receives);
  again.start();
  while (!again.test()) ranks.progress();
  return again.explain().empty() ? 1 : 0;
}
