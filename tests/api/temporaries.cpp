// with WRONG: no matching .*function for call to .*isend
// Memory that a request uses must be there when the call has returned: no temporary that owns it is taken.
#include <lacuna.hpp>
#include <span>
#include <vector>

std::vector<double> column() { return std::vector<double>(8); }

void begin(lacuna::Communicator& ranks) {
  std::vector<double> kept = column();
#ifdef WRONG
  ranks.isend(column(), 1).wait();
#else
  ranks.isend(kept, 1).wait();
#endif
  ranks.isend(std::span<const double>(kept), 1).wait();
  ranks.irecv(std::span(kept)).wait();
  ranks.send(column(), 1);  // done when it returns
}
static_assert(!lacuna::Lasting<std::vector<double>> && lacuna::Lasting<std::vector<double>&> && lacuna::Lasting<std::span<double>>);
