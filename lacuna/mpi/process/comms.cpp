#include "lacuna/mpi/process/comms.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace lacuna::mpi {

namespace {

// Of MPICH alone: its ranks are threads.
bool is_of_threads(Comm comm) {
  const Host& h = host();
  int threads = 0;
  return h.Comm_test_threadcomm != nullptr && h.Comm_test_threadcomm(comm, &threads) == kSuccess && threads != 0;
}
// Its messages may be received by MPIX_Stream_recv and its like.
bool is_of_stream(Comm comm) {
  const Host& h = host();
  int stream = kStreamNull;
  return h.Comm_get_stream != nullptr && h.Comm_get_stream(comm, 0, &stream) == kSuccess && stream != kStreamNull;
}

// Bits in which each of these has a part (splitmix64, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t bits) {
  bits += 0x9e37'79b9'7f4a'7c15;
  bits = (bits ^ bits >> 30) * 0xbf58'476d'1ce4'e5b9;
  bits = (bits ^ bits >> 27) * 0x94d0'49bb'1331'11eb;
  return bits ^ bits >> 31;
}

// A communicator's, or its remote group.
class OwnedGroup {
 public:
  OwnedGroup(Comm comm, bool remote) {
    if ((remote ? host().Comm_remote_group(comm, &group_) : host().Comm_group(comm, &group_)) != kSuccess) throw std::bad_alloc();
  }
  ~OwnedGroup() { host().Group_free(&group_); }
  OwnedGroup(const OwnedGroup&) = delete;
  OwnedGroup& operator=(const OwnedGroup&) = delete;
  [[nodiscard]] int size() const {
    int size = 0;
    if (host().Group_size(group_, &size) != kSuccess) throw std::bad_alloc();
    return size;
  }
  /// Of each of its ranks, the rank in another group.
  [[nodiscard]] std::vector<int> ranks_in(Group other) const {
    std::vector<int> ranks, there(static_cast<std::size_t>(size()), kUndefined);
    ranks.reserve(there.size());
    for (int rank = 0; std::cmp_less(rank, there.size()); ++rank) ranks.push_back(rank);
    translate(ranks, other, there);
    return there;
  }
  [[nodiscard]] int rank_in(Group other, int rank) const {
    int there = kUndefined;
    translate({&rank, 1}, other, {&there, 1});
    return there;
  }

 private:
  void translate(std::span<const int> ranks, Group other, std::span<int> there) const {
    const Host& h = host();
    if (h.Group_translate_ranks(group_, static_cast<int>(ranks.size()), ranks.data(), other, there.data()) != kSuccess)
      throw std::bad_alloc();
  }
  Group group_{};
};

}  // namespace

Comms::Comms(std::vector<RankPlace> world) : world_(std::move(world)), sound_(asks_host()) {
  std::vector<int> worlds(world_.size());
  for (std::size_t rank = 0; rank < worlds.size(); ++rank) worlds[rank] = static_cast<int>(rank);
  find_ranks(of_world_, worlds);
  of_world_.kept = true;
  of_world_.identity = 1;
  births_[host().world].identity = 1;
}

// This process has no place, and one of a foreign world none either.
void Comms::find_ranks(CommOf& of, std::span<const int> worlds) const {
  std::size_t others = 0;
  for (const int world : worlds) {
    const RankPlace place = world < 0 ? RankPlace{} : world_.at(static_cast<std::size_t>(world));
    of.foreign = of.foreign || world < 0;
    others += place.local >= 0 ? 1 : 0;
    of.name = mixed(of.name ^ (static_cast<std::uint64_t>(world) + 1));
    of.places.push_back(place);
  }
  of.one_node = others + 1 == worlds.size() && !of.inter && !of.foreign;
}

bool Comms::asks_host() {
  return host().Comm_group(host().world, &group_) == kSuccess && host().Comm_create_keyval(&copied, &deleted, &keyval_, this) == kSuccess;
}

int Comms::copied(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return kSuccess;
}

int Comms::deleted(Comm comm, int, void*, void* comms) {
  auto& self = *static_cast<Comms*>(comms);
  const std::scoped_lock lock(self.mutex_);
  if (self.recent_.comm == comm) self.recent_ = {};
  if (const auto found = self.known_.find(comm); found != self.known_.end() && found->second->order != nullptr)
    found->second->order->leave();
  self.known_.erase(comm);
  self.births_.erase(comm);
  for (Refused& one : self.refused_)
    if (one.comm == comm) one = {};
  return kSuccess;
}

bool Comms::of_host(Comm comm) try {
  if (host().Comm_test_threadcomm == nullptr && host().Comm_get_stream == nullptr) return false;
  const CommOf* found = find(comm);
  return found != nullptr && found->of_host;
} catch (const std::bad_alloc&) {
  return false;
}

// A rank without memory for what it has made has no name for that; then the others find out that it has none.
void Comms::born(Comm parent, std::size_t function, Comm made) try {
  const std::scoped_lock lock(mutex_);
  births_.erase(made);  // of one that was freed where it was not seen
  const auto of = births_.find(parent);
  if (of == births_.end()) return;
  const std::uint64_t number = ++of->second.children.at(function) * kBirths + function;
  if (made != host().no_comm) births_[made].identity = mixed(of->second.identity + number) | 1;
} catch (const std::bad_alloc&) {
  return;
}

void Comms::gone(Comm comm) {
  const std::scoped_lock lock(mutex_);
  births_.erase(comm);
}

std::uint64_t Comms::identity_of(Comm comm) {
  const std::scoped_lock lock(mutex_);
  const auto found = births_.find(comm);
  return found != births_.end() ? found->second.identity : 0;
}

bool Comms::lives(Comm comm) {
  const std::scoped_lock lock(mutex_);
  return comm == host().world || known_.contains(comm);
}

CommOf* Comms::find_known(Comm comm) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(comm); known != known_.end() && known->second->kept) {
      if (!Mutex::multiple()) recent_ = {.comm = comm, .of = known->second.get()};
      return known->second.get();
    }
  }
  return make(comm);
}

CommOf* Comms::make(Comm comm) {
  if (comm == host().no_comm) return nullptr;
  int inter = 0;
  if (host().Comm_test_inter(comm, &inter) != kSuccess) return nullptr;
  const std::vector<int> worlds = OwnedGroup(comm, inter != 0).ranks_in(group_);
  auto made = std::make_unique<CommOf>();
  made->inter = inter != 0;
  made->of_threads = is_of_threads(comm);
  made->of_host = made->of_threads || is_of_stream(comm);
  find_ranks(*made, worlds);
  made->identity = identity_of(comm);
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
    if (Refused* const refused = find_refused(comm); refused != nullptr) {  // there was no memory for it before
      found->exchanges = CommOf::Exchanges::refused;
      found->kept = refused->kept;
      *refused = {};
      return found;
    }
    found->in_making = true;
  }
  const bool kept = host().Comm_set_attr(comm, keyval_, nullptr) == kSuccess;
  const std::scoped_lock lock(mutex_);
  found->kept = kept;
  found->in_making = false;
  return found;
}

bool Comms::may_send_descriptors(Comm comm, int source) try { return place(comm, source).known(); } catch (const std::bad_alloc&) {
  return source >= 0;
}

std::optional<bool> Comms::is_of_one_node(Comm comm) const try {
  int me = 0;
  const OwnedGroup ranks(comm, false);
  host().Comm_rank(host().world, &me);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const int world = ranks.rank_in(group_, rank);
    if (world < 0 || (world != me && world_[static_cast<std::size_t>(world)].local < 0)) return false;
  }
  return true;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

bool Comms::has_one_group(Comm comm) {
  int inter = 0;
  return host().Comm_test_inter(comm, &inter) == kSuccess && inter == 0 && !is_of_threads(comm);
}

Comms::Refused* Comms::find_refused(Comm comm) {
  const auto found = std::ranges::find(refused_, comm, &Refused::comm);
  return found != refused_.end() ? &*found : nullptr;
}

void Comms::refuse(Comm comm) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(comm); known != known_.end() || comm == host().world) {
      (comm == host().world ? of_world_ : *known->second).exchanges = CommOf::Exchanges::refused;
      return;
    }
    Refused* const room = find_refused({});
    if (room == nullptr) return;
    *room = {.comm = comm, .kept = false};
  }
  const bool kept = host().Comm_set_attr(comm, keyval_, nullptr) == kSuccess;  // tells when it is gone
  const std::scoped_lock lock(mutex_);
  if (Refused* const made = find_refused(comm); made != nullptr) made->kept = kept;
}

bool Comms::refuses(Comm comm) {
  const std::scoped_lock lock(mutex_);
  return find_refused(comm) != nullptr;
}

}  // namespace lacuna::mpi
