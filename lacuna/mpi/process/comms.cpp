#include "lacuna/mpi/process/comms.hpp"

namespace lacuna::mpi {

namespace {

// Of MPICH alone: its ranks are threads, or its messages may be received by MPIX_Stream_recv and its like.
bool is_of_host(Comm comm) {
  const Host& h = host();
  int threads = 0, stream = kStreamNull;
  if (h.Comm_test_threadcomm != nullptr && h.Comm_test_threadcomm(comm, &threads) == kSuccess && threads != 0) return true;
  return h.Comm_get_stream != nullptr && h.Comm_get_stream(comm, 0, &stream) == kSuccess && stream != kStreamNull;
}

}  // namespace

Comms::Comms(std::vector<RankPlace> world) : world_(std::move(world)) {
  of_world_.places = world_;
  host().Comm_group(host().world, &group_);
  host().Comm_create_keyval(&copied, &deleted, &keyval_, this);
}

int Comms::copied(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return kSuccess;
}

int Comms::deleted(Comm comm, int, void*, void* comms) {
  auto& self = *static_cast<Comms*>(comms);
  const std::scoped_lock lock(self.mutex_);
  self.known_.erase(comm);
  return kSuccess;
}

bool Comms::lives(Comm comm) {
  const std::scoped_lock lock(mutex_);
  return comm == host().world || known_.contains(comm);
}

CommOf* Comms::find(Comm comm) {
  if (comm == host().world) return &of_world_;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(comm); known != known_.end() && known->second->kept) return known->second.get();
  }
  if (comm == host().no_comm) return nullptr;
  int inter = 0, size = 0;
  Group group{};
  if (host().Comm_test_inter(comm, &inter) != kSuccess) return nullptr;
  if ((inter != 0 ? host().Comm_remote_group(comm, &group) : host().Comm_group(comm, &group)) != kSuccess) return nullptr;
  host().Group_size(group, &size);
  std::vector<int> ranks, worlds(static_cast<std::size_t>(size), kUndefined);
  ranks.reserve(worlds.size());
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  host().Group_translate_ranks(group, size, ranks.data(), group_, worlds.data());
  host().Group_free(&group);
  auto made = std::make_unique<CommOf>();
  made->inter = inter != 0;
  made->of_host = is_of_host(comm);
  if (made->of_host) worlds.clear();
  for (const int world : worlds) made->places.push_back(world < 0 ? RankPlace{} : world_.at(static_cast<std::size_t>(world)));
  // The first of several threads sets the attribute: to set it again is to delete it, and what the others have found
  // (deleted()). In the table first, where the other threads find it. Where it cannot be set, nothing tells when the
  // communicator is gone: it is looked at again at each use.
  CommOf* found = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto [known, first] = known_.try_emplace(comm, std::move(made));
    found = known->second.get();
    if (!first && (found->kept || found->in_making)) return found;
    if (!first && found->places != made->places) *found = std::move(*made);
    found->in_making = true;
  }
  const bool kept = host().Comm_set_attr(comm, keyval_, nullptr) == kSuccess;
  const std::scoped_lock lock(mutex_);
  found->kept = kept;
  found->in_making = false;
  return found;
}

}  // namespace lacuna::mpi
