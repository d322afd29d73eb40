// with WRONG: no matching .*function for call to .*recv
// Messages and one-sided access, as a program of a user has them.
#include <array>
#include <cstdint>
#include <lacuna.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

// What std::mdspan offers.
struct Column {
  double* data;
  [[nodiscard]] double* data_handle() const { return data; }
  static constexpr std::size_t rank() { return 1; }
  [[nodiscard]] std::int64_t extent(std::size_t) const { return 8; }
  [[nodiscard]] std::int64_t stride(std::size_t) const { return 8; }
};
static_assert(lacuna::StridedView<Column> && lacuna::WritableMemory<Column>);
static_assert(lacuna::Memory<const std::vector<int>&> && !lacuna::WritableMemory<const std::vector<int>&>);
static_assert(!lacuna::Memory<std::vector<std::string>&>);  // strings cannot be moved as bytes
static_assert(!lacuna::Memory<std::vector<bool>&>);         // no contiguous range

int main() {
  auto ranks = lacuna::Communicator::connect("job", {.size = 2, .progress_thread = true});
  std::vector<double> matrix(64);
  ranks.send(Column{matrix.data()}, 1);
  ranks.send(matrix.data(), lacuna::Layout::of(matrix), 1, 7);
  std::array<lacuna::Request, 2> both{ranks.isend(matrix, 1), ranks.irecv(Column{matrix.data()})};
  const auto [index, message] = ranks.wait_any(both);
  ranks.wait_all(both);
  lacuna::Request one = ranks.isend(std::span<const double>(matrix), 1);
  while (!one.test()) ranks.progress();
#ifdef WRONG  // what is received into must not be const
  ranks.recv(std::as_const(matrix));
#else
  ranks.recv(matrix);
#endif
  const lacuna::Exposed exposed = ranks.expose(matrix);
  const lacuna::Layout all = lacuna::Layout::of(matrix);
  ranks.put(matrix, exposed);
  ranks.get(matrix, exposed, 0, all);
  ranks.iput(matrix.data(), all, exposed, 0, all).wait();
  ranks.iget(matrix.data(), all, exposed, 0, all).wait();
  ranks.withdraw(exposed);
  ranks.deregister_memory(ranks.register_memory(matrix));
  return ranks.statistics().empty() || ranks.explain(all, all, 1).empty() || ranks.probe() || index > 1 || message.bytes > 0 ? 1 : 0;
}
