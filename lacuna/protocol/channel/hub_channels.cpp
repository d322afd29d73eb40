#include "lacuna/base/rarely.hpp"
#include "lacuna/protocol/channel/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lacuna::protocol {
namespace {

// With so many a message found its receive at once in every exchange of 2 to 1024 ranks (docs/guide/scale.md), and a
// rank has 5 MiB.
constexpr int kMostReceives = 256, kMostSends = 64;
constexpr std::size_t kSlotBytes = sizeof(Head) + kMostPayload;
constexpr std::int64_t kLeaving = 60'000'000'000;  // ns for what was sent to arrive

}  // namespace

class HubChannels::One final : public Channel {
 public:
  One(HubChannels& all, int peer) : all_(all), peer_(peer) {}
  std::byte* claim(std::size_t /*bytes*/) override {
    std::byte* const there = broken_ ? nullptr : all_.claim();
    return there == nullptr ? nullptr : there + sizeof(Head);
  }
  void commit(Head& head) override;
  Result<bool> next(Arrival& /*arrival*/) override { return false; }
  void pop() override {}
  const base::Error* fault() override;
  void give_up() override {
    if (broken_) all_.given_up_.push_back(peer_);
  }
  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t /*addr*/, std::uint32_t /*rkey*/, std::size_t /*bytes*/) const override {
    return nullptr;
  }
  void keep(const nic::SharedBuffer& /*memory*/) override {}
  [[nodiscard]] bool shares_memory() const override { return false; }

 private:
  HubChannels& all_;
  int peer_;
  std::optional<base::Error> broken_;
};

void HubChannels::One::commit(Head& head) {
  Result<void> sent = all_.send(peer_, head);
  if (sent) return;
  LACUNA_RARELY("hub: a send is refused");
  broken_ = std::move(sent).error();
  all_.failing_.push_back(peer_);
}

const base::Error* HubChannels::One::fault() {
  const base::Error* found = broken_ ? &*broken_ : all_.hub_->fault(peer_);
  if (found == nullptr) return nullptr;
  all_.poll(true);
  const bool more = std::ranges::any_of(all_.arrived_, [&](const Came& came) { return came.from == peer_; });
  if (!more) return found;
  LACUNA_RARELY("hub: more came before the fault");  // which goes first
  return nullptr;
}

HubChannels::HubChannels(nic::Context& context, nic::RegisteredBuffer memory, int receives, int sends)
    : context_(context), memory_(std::move(memory)), receives_(receives), sends_(sends) {
  unposted_.reserve(static_cast<std::size_t>(receives));
  for (int slot = receives + sends - 1; slot >= receives; --slot) free_.push_back(slot);
}

// Until nothing of this rank's memory is on its way any more.
HubChannels::~HubChannels() {
  const std::int64_t deadline = context_.now() + kLeaving;
  for (poll(true); hub_ != nullptr && (in_flight() > 0 || !given_up_.empty()); poll(true)) {
    if (!context_.wait(deadline)) return;
  }
}

Result<std::unique_ptr<HubChannels>> HubChannels::create(nic::Context& context) {
  const nic::Limits& limits = context.limits();
  const int receives = std::min(kMostReceives, limits.max_recv_wr);
  const int sends = std::min(kMostSends, limits.max_send_wr);
  nic::RegisteredBuffer memory =
      LACUNA_TRY(nic::RegisteredBuffer::create(context, (receives + sends) * static_cast<std::int64_t>(kSlotBytes)));
  std::unique_ptr<HubChannels> made(new HubChannels(context, std::move(memory), receives, sends));
  LACUNA_TRY(made->open());
  return made;
}

Result<void> HubChannels::open() {
  queue_ = LACUNA_TRY(context_.create_completion_queue(receives_ + sends_));
  hub_ = LACUNA_TRY(context_.create_hub(*queue_, {.max_send_wr = sends_, .max_recv_wr = receives_}));
  for (int i = 0; i < receives_; ++i) LACUNA_TRY(post(i));
  return {};
}

std::unique_ptr<Channel> HubChannels::channel(int peer) { return std::make_unique<One>(*this, peer); }

std::byte* HubChannels::slot(int number) const { return memory_.buffer.data() + static_cast<std::size_t>(number) * kSlotBytes; }

Result<void> HubChannels::post(int receive) {
  const nic::Sge sge = memory_.sge(receive * static_cast<std::int64_t>(kSlotBytes), kSlotBytes);
  return hub_->post_recv({.wr_id = static_cast<std::uint64_t>(receive), .sg_list = {&sge, 1}});
}

std::byte* HubChannels::claim() {
  if (claimed_ < 0 && !free_.empty()) {
    claimed_ = free_.back();
    free_.pop_back();
  }
  if (claimed_ >= 0) return slot(claimed_);
  LACUNA_RARELY("hub: all buffers are on their way");
  return nullptr;
}

Result<void> HubChannels::send(int to, const Head& head) {
  std::memcpy(slot(claimed_), &head, sizeof head);
  const auto bytes = static_cast<std::int64_t>(sizeof head + head.payload);
  const nic::Sge sge = memory_.sge(claimed_ * static_cast<std::int64_t>(kSlotBytes), bytes);
  LACUNA_TRY(hub_->post_send(to, {.wr_id = static_cast<std::uint64_t>(claimed_),
                                  .opcode = nic::Opcode::send,
                                  .sg_list = {&sge, 1},
                                  .inline_data = bytes <= context_.limits().max_inline}));
  claimed_ = -1;
  return {};
}

// One that is refused is tried again.
void HubChannels::post_again() {
  while (!unposted_.empty()) {
    if (!post(unposted_.back())) {
      LACUNA_RARELY("hub: a receive is refused");
      return;
    }
    unposted_.pop_back();
  }
}

void HubChannels::tell_given_up() {
  std::erase_if(given_up_, [this](int peer) {
    if (claim() == nullptr) return false;
    Head head;
    head.kind = HeadKind::lost;
    if (hub_->fault(peer) == nullptr && !send(peer, head)) return false;
    LACUNA_RARELY("hub: a peer that was given up is told");
    return true;
  });
}

void HubChannels::poll(bool all) {
  if (queue_ == nullptr) return;
  post_again();
  tell_given_up();
  // Until something came or all was seen: with sends alone this rank would wait, and nothing may wake it for the rest.
  std::array<nic::Completion, 16> completions;
  bool more = true;
  while (more) {
    const int n = context_.poll(*queue_, completions);
    for (const nic::Completion& done : std::span(completions).first(static_cast<std::size_t>(n))) {
      if (done.opcode != nic::Opcode::recv)
        free_.push_back(static_cast<int>(done.wr_id));
      else if (done.status == nic::Status::success)
        arrived_.push_back({static_cast<int>(done.qp_num), static_cast<int>(done.wr_id), done.byte_len});
    }
    more = n == std::ssize(completions) && (all || arrived_.empty());
  }
}

Result<bool> HubChannels::next(Arrived& arrival, int& from) {
  if (arrived_.empty()) poll();
  if (arrived_.empty()) return false;
  const Came& came = arrived_.front();
  from = came.from;
  if (came.bytes < sizeof(Head)) return base::fail(base::Code::malformed, "a message that is too short for a head");
  arrival.head = base::read_once(*reinterpret_cast<const Head*>(slot(came.receive)));
  arrival.payload = slot(came.receive) + sizeof(Head);
  if (came.bytes != sizeof(Head) + arrival.head.payload)
    return base::fail(base::Code::malformed, "a message of another length than it says");
  return true;
}

std::vector<int>& HubChannels::failing() {
  for (int peer = hub_->next_fault(); peer >= 0; peer = hub_->next_fault()) failing_.push_back(peer);
  return failing_;
}

void HubChannels::pop() {
  const int receive = arrived_.front().receive;
  arrived_.pop_front();
  post_again();
  if (!unposted_.empty() || !post(receive)) unposted_.push_back(receive);
}

}  // namespace lacuna::protocol
