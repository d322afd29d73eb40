// sgrs: send gathers, receive scatters. One message carries as much as both sides' lists can name; the lists need not be alike, since a
// message is a stream of bytes, but a receive that is too short breaks the queue pair. So both ends cut at the same byte positions: where
// either side's list is full (paper_findings, note 7).
#include <algorithm>

#include "lacuna/method/methods.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sgrs : public Operation {
 public:
  Sgrs(Endpoint& endpoint, const Layout& own, const Layout& peers, const nic::Region& region)
      : Operation(endpoint), own_layout_(own), own_(own), peers_(peers), size_(own.size()), most_bytes_(largest_write(endpoint.limits())) {
    layout_ = &own_layout_;
    region_ = &region;
  }
  Result<void> begin() override {
    own_.seek(0);
    peers_.seek(0);
    posted_all_ = false;
    return {};
  }

 protected:
  // The next message's list of our side. A transfer of no bytes is one empty message.
  std::span<const nic::Sge> next_list() {
    const std::int64_t from = own_.position();
    std::int64_t theirs = 0;
    for (int i = 0; i < endpoint_.limits().max_sge && theirs < most_bytes_ && !peers_.done(); ++i)
      theirs += peers_.next_run(most_bytes_ - theirs).length;
    std::int64_t ours = 0;
    list_.clear();
    while (std::ssize(list_) < endpoint_.limits().max_sge && ours < theirs) {
      const layout::Run run = own_.next_run(theirs - ours);
      list_.push_back({reinterpret_cast<std::uint64_t>(base_ + run.offset), static_cast<std::uint32_t>(run.length), region_->lkey()});
      ours += run.length;
    }
    if (ours < theirs) peers_.seek(from + ours);
    posted_all_ = own_.position() == size_;
    return list_;
  }
  [[nodiscard]] bool posted_all() const { return posted_all_; }

 private:
  Layout own_layout_;
  layout::Cursor own_;
  layout::Cursor peers_;
  std::int64_t size_;
  std::int64_t most_bytes_;
  bool posted_all_ = false;
  std::vector<nic::Sge> list_;
};

class Sender final : public Sgrs {
 public:
  using Sgrs::Sgrs;
  Result<bool> progress() override {
    LACUNA_TRY(healthy());
    while (!posted_all() && send_room()) LACUNA_TRY(send(next_list()));
    return posted_all() && sends_in_flight() == 0;
  }
};

class Receiver final : public Sgrs {
 public:
  using Sgrs::Sgrs;
  Result<void> begin() override {
    LACUNA_TRY(Sgrs::begin());
    return post();
  }
  Result<bool> progress() override {
    LACUNA_TRY(healthy());
    LACUNA_TRY(post());
    return posted_all() && receives_done() == receives_posted();
  }

 private:
  Result<void> post() {
    while (!posted_all() && receives_posted() - receives_done() < static_cast<std::uint32_t>(endpoint_.options().max_recv_wr))
      LACUNA_TRY(receive(next_list()));
    return {};
  }
};

}  // namespace

Made sgrs_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return std::make_unique<Sender>(endpoint, transfer.src, transfer.dst, *memory.region);
}
Made sgrs_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return std::make_unique<Receiver>(endpoint, transfer.dst, transfer.src, *memory.region);
}

}  // namespace lacuna::method
