// The endpoint on which the two ends of a connection say to one another what said.hpp lists. What is to be said waits
// here while the provider has no room.
#pragma once

#include <deque>
#include <vector>

#include "lacuna/nic/memory.hpp"
#include "lacuna/nic/ofi/completion_queue.hpp"
#include "lacuna/nic/ofi/said.hpp"

namespace lacuna::nic::ofi {

/// An endpoint, and whom it is connected with.
struct Endpoint {
  Owned<fid_av> addresses;  // of endpoints that are not connected (FI_EP_RDM)
  Owned<fid_ep> endpoint;
  fi_addr_t peer = FI_ADDR_UNSPEC;
};

class Control {
 public:
  /// Errors: out_of_memory, limit, io: those of registering its memory.
  static Result<std::unique_ptr<Control>> create(Context& context, QueuePair& owner, CompletionQueue& queue);
  Control(Context& context, QueuePair& owner, CompletionQueue& queue, RegisteredBuffer memory);

  /// Before the endpoint connects: posts the receives. Errors: io.
  Result<void> open(Endpoint& endpoint);
  /// Errors: limit: the peer asks and does not listen.
  Result<void> say(const Said& message);
  /// Nothing that was said is under way.
  [[nodiscard]] bool quiet() const { return waiting_.empty() && free_.size() == kSlots; }
  /// Since when the provider refuses what waits; 0: it does not. Endpoints without a connection say in no other way
  /// that the peer is gone: the provider tries to reach it anew, for ever.
  [[nodiscard]] std::int64_t refused_since() const { return refused_since_; }
  /// Gives the provider what waits.
  void advance();
  /// A slot of say() is free.
  void said(std::uint64_t slot) { free_.push_back(slot); }
  /// What has come into a slot; nothing, if that is no message. The slot is posted again.
  std::optional<Said> heard(std::uint64_t slot, std::uint64_t bytes);

 private:
  static constexpr std::uint64_t kSlots = 16;  // to send from, and as many to receive into
  [[nodiscard]] std::byte* at(std::uint64_t slot) const { return memory_.buffer.data() + slot * sizeof(Said); }
  bool post_receive(std::uint64_t slot);
  bool post_send(std::uint64_t slot);

  Context& context_;
  QueuePair& owner_;
  CompletionQueue& queue_;
  RegisteredBuffer memory_;
  void* desc_ = nullptr;
  Endpoint* endpoint_ = nullptr;
  std::int64_t refused_since_ = 0;
  std::deque<Said> waiting_;
  std::vector<std::uint64_t> free_;        // slots to send from
  std::vector<std::uint64_t> to_receive_;  // slots that the provider had no room for
};

}  // namespace lacuna::nic::ofi
