// sgrs: send gathers, receive scatters. One message carries as much as both sides' lists can name; the lists need not
// be alike, since a message is a stream of bytes, but a receive that is too short breaks the queue pair. So both ends
// cut at the same byte positions: where either side's list is full (paper_findings, note 7).
#include <algorithm>

#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sgrs : public Operation {
 public:
  Sgrs(Endpoint& endpoint, const Layout& own, const Layout& peers, const Memory& memory)
      : Operation(endpoint, own, memory), ours_(own), theirs_(peers), most_bytes_(largest_message(endpoint.limits())) {}

 protected:
  Result<void> begin() override {
    ours_.seek(0);
    theirs_.seek(0);
    posted_all_ = false;
    return {};
  }
  // The next message's list of our side. A transfer of no bytes is one empty message.
  std::span<const nic::Sge> next_list() {
    const std::int64_t from = ours_.position();
    std::int64_t theirs = 0;
    for (int i = 0; i < endpoint_.limits().max_sge && theirs < most_bytes_ && !theirs_.done(); ++i)
      theirs += theirs_.next_run(most_bytes_ - theirs).length;
    std::int64_t ours = 0;
    list_.clear();
    while (std::ssize(list_) < endpoint_.limits().max_sge && ours < theirs) {
      list_.push_back(sge(ours_.next_run(theirs - ours)));
      ours += list_.back().length;
    }
    if (ours < theirs) theirs_.seek(from + ours);
    posted_all_ = ours_.done();
    return list_;
  }
  [[nodiscard]] bool posted_all() const { return posted_all_; }

 private:
  layout::Cursor ours_;
  layout::Cursor theirs_;
  std::int64_t most_bytes_;
  bool posted_all_ = false;
  std::vector<nic::Sge> list_;
};

class Sender final : public Sgrs {
 public:
  using Sgrs::Sgrs;
  Result<bool> advance() override {
    while (!posted_all() && send_room() > 0) {
      const std::span<const nic::Sge> list = next_list();
      LACUNA_TRY(send(list, posted_all()));
    }
    return posted_all() && sends_in_flight() == 0;
  }
};

class Receiver final : public Sgrs {
 public:
  using Sgrs::Sgrs;
  Result<bool> advance() override {
    LACUNA_TRY(post_receives());
    return posted_all() && receives_done() == receives_posted();
  }

 private:
  Result<void> begin() override {
    LACUNA_TRY(Sgrs::begin());
    return post_receives();
  }
  Result<void> post_receives() {
    while (!posted_all() && receive_room()) LACUNA_TRY(receive(next_list()));
    return {};
  }
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  if (role == Role::sender) return std::make_unique<Sender>(endpoint, transfer.src, transfer.dst, memory);
  return std::make_unique<Receiver>(endpoint, transfer.dst, transfer.src, memory);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  const layout::PairOutline& pair = cost_items.pair();
  const double messages = lists_of(pair.paired, limits.max_sge, pair.bytes(), limits);
  cost_items.haul({.messages = true,
                   .requests = messages,
                   .doorbells = messages,
                   .gathers = std::max(static_cast<double>(pair.src.runs), messages),
                   .scatters = std::max(static_cast<double>(pair.dst.runs), messages),
                   .pieces = pair.pieces});
}

}  // namespace

extern const Method kSgrs{.name = "sgrs",
                          .summary = "send gathers, receive scatters: lists on both sides",
                          .notifies = kTwoSided,
                          .initiator = Role::sender,
                          .exposes = Exposes::destination,
                          .indirect_keys = false,
                          .make = &make,
                          .cost_items = &cost_items};

}  // namespace lacuna::method
