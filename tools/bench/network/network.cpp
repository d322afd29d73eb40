#include "tools/bench/network/network.hpp"

#include "tools/bench/job/pair.hpp"

namespace lacuna::bench {
namespace {

constexpr int kTag = 1;
constexpr double kPatience = 60;  // s for the other one to come

protocol::Communicator* ranks_of_table = nullptr;  // the table's functions are plain ones

layout::Layout bytes(int count) { return layout::Layout::bytes(count).value(); }

int table_rank() { return ranks_of_table->rank(); }
int table_send(const void* base, int count, const lacuna_mpi_type* /*type*/, int dest) {
  return ranks_of_table->send(base, bytes(count), dest, kTag) ? 0 : 1;
}
int table_recv(void* base, int count, const lacuna_mpi_type* /*type*/, int source) {
  return ranks_of_table->recv(base, bytes(count), source, kTag) ? 0 : 1;
}
int table_stop() {
  ranks_of_table = nullptr;
  return 0;
}
const char* table_library() { return "contiguous messages of Lacuna"; }

constexpr lacuna_mpi_shim kTable = [] {
  lacuna_mpi_shim table{};
  table.version = LACUNA_MPI_SHIM_VERSION;
  table.stop = &table_stop;
  table.library = &table_library;
  table.rank = &table_rank;
  table.send = &table_send;
  table.recv = &table_recv;
  return table;
}();

}  // namespace

Network meet_other(const std::string& nic, const std::string& address, int rank, const std::string& secret) {
  protocol::Meeting met = must(
      protocol::meet({.address = address, .size = Pair::kRanks, .rank = rank, .secret = secret, .timeout_s = kPatience}, nic), "meeting");
  protocol::Options options = must(protocol::Options::from_environment({}), "the environment");
  Network network{.context = std::move(met.context), .ranks = nullptr};
  const std::string name(network.context->nic_name());
  network.ranks = must(protocol::Communicator::create(*network.context, name, std::move(met.group), std::move(options)), "connecting");
  return network;
}

std::unique_ptr<Mpi> messages_of(protocol::Communicator& ranks) {
  ranks_of_table = &ranks;
  return Mpi::over(&kTable);
}

}  // namespace lacuna::bench
