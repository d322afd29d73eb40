#include "meet.hpp"

namespace lacuna::python {

using base::Result;
using layout::Layout;

Result<void> meet(protocol::Communicator& ranks) {
  std::byte word{};
  const Layout one = LACUNA_TRY(Layout::bytes(1));
  for (int distance = 1; distance < ranks.size(); distance *= 2) {
    protocol::Request* sent = LACUNA_TRY(ranks.isend(&word, one, (ranks.rank() + distance) % ranks.size(), 0));
    LACUNA_TRY(ranks.recv(&word, one, (ranks.rank() - distance + ranks.size()) % ranks.size(), 0));
    LACUNA_TRY(ranks.wait(sent));
  }
  return {};
}

}  // namespace lacuna::python
