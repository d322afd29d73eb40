#include "bench/messages/pair.hpp"

namespace lacuna::bench {
namespace {

constexpr int kRanks = 2;

template <class T>
T must(base::Result<T> result, const char* what) {
  if (!result) throw Broken(std::string(what) + ": " + result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

Pair::Pair(const std::string& shim, const std::string& name) : mpi_(must(Mpi::start(shim, kRanks), "MPI")), rank_(mpi_->calls().rank()) {
  must(base::pin_to_cpu(rank_), "pinning");
  const std::string nic = "local";
  context_ = must(nic::open(nic), "NIC");
  protocol::Options options;
  options.force = must(guide::Force::from_environment(), "LACUNA_METHOD, LACUNA_PATH");
  protocol::Group group = must(protocol::meet({.address = name, .size = kRanks, .rank = rank_}), "meeting");
  lacuna_ = must(protocol::Communicator::create(*context_, nic, std::move(group), std::move(options)), "connecting");
}

void Pair::tell(Words words) const {
  if (mpi_->calls().send(&words, sizeof words, nullptr, peer()) != 0) throw Broken("MPI_Send failed");
}

Pair::Words Pair::hear() const {
  Words words;
  if (mpi_->calls().recv(&words, sizeof words, nullptr, peer()) != 0) throw Broken("MPI_Recv failed");
  return words;
}

}  // namespace lacuna::bench
