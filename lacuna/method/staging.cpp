#include "lacuna/method/staging.hpp"

#include <utility>

namespace lacuna::method {

bool reachable(const Endpoint& endpoint, const nic::Region& region) {
  const nic::PathInfo* path = endpoint.limits().path(endpoint.qp().path());
  return path == nullptr || !path->shared_only || region.shared();
}

Result<Words::Word> Words::take(nic::Context& context) {
  constexpr std::int64_t kApart = 128, kWords = 32;
  if (free_.empty()) {
    const auto memory = std::make_shared<const nic::RegisteredBuffer>(LACUNA_TRY(nic::RegisteredBuffer::create(context, kApart * kWords)));
    for (std::int64_t i = kWords; i-- > 0;) free_.push_back({memory, i * kApart});
  }
  Word place = std::move(free_.back());
  free_.pop_back();
  __atomic_store_n(place.word(), 0, __ATOMIC_RELAXED);
  return place;
}

Result<Flag> Flag::create(Endpoint& endpoint) { return Flag(endpoint.words(), LACUNA_TRY(endpoint.words().take(endpoint.context()))); }

Flag::Flag(Words& words, Words::Word place)
    : words_(&words), place_(std::move(place)), sge_(place_.memory->sge(place_.offset, sizeof(std::uint64_t))) {}

Flag::~Flag() {
  if (place_.memory == nullptr || going_) return;
  const bool awaited = named_ && (transfers_ == 0 || __atomic_load_n(place_.word(), __ATOMIC_ACQUIRE) != transfers_);
  if (!awaited) words_->give_back(std::move(place_));
}

Target::Part Flag::part() const {
  named_ = true;
  return {place_.memory->region.addr() + static_cast<std::uint64_t>(place_.offset), place_.memory->region.rkey()};
}

nic::SendRequest Flag::raise(const Endpoint& endpoint, const Target::Part& peers) {
  *place_.word() = transfers_;
  const bool inlined = std::cmp_greater_equal(endpoint.limits().max_inline, sizeof(std::uint64_t));
  going_ = !inlined;
  return {.opcode = nic::Opcode::write, .sg_list = {&sge_, 1}, .remote_addr = peers.addr, .rkey = peers.rkey, .inline_data = inlined};
}

}  // namespace lacuna::method
