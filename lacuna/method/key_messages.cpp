#include "lacuna/method/key_messages.hpp"

#include <algorithm>

namespace lacuna::method {
namespace {

struct Message {
  std::size_t first;  // part
  std::size_t parts;
};

std::vector<Message> group(const std::vector<StreamRange>& parts, int keys, std::int64_t most_bytes) {
  std::vector<Message> messages;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bytes += parts[i].bytes;
    if (messages.empty() || std::cmp_equal(messages.back().parts, keys) || bytes > most_bytes) {
      messages.push_back({i, 0});
      bytes = parts[i].bytes;
    }
    ++messages.back().parts;
  }
  if (messages.empty()) messages.push_back({0, 0});  // a transfer of no bytes is one empty message
  return messages;
}

class KeyMessages : public Operation {
 public:
  KeyMessages(Endpoint& endpoint, const Layout& own, const Memory& memory, std::vector<StreamRange> parts, std::vector<Message> messages,
              const KeyRoom& room, bool receiving)
      : Operation(endpoint, own, memory),
        parts_(std::move(parts)),
        messages_(std::move(messages)),
        room_(room),
        rights_{.local_write = receiving, .remote_write = false, .remote_read = false} {}

 protected:
  Result<bool> prepare_more() override {
    next_ = retired_ = 0;
    return LACUNA_TRY(warming_.step(endpoint_.keys(), {own_, base_, *region_, {}, room_, rights_}, parts_, counters_)) &&
           LACUNA_TRY(fetch()) && bound();
  }
  Result<void> begin() override {
    next_ = retired_ = 0;
    return {};
  }
  [[nodiscard]] bool posted_all() const { return next_ == messages_.size(); }
  // Leases the keys of the next message into list_. False if that has to wait.
  Result<bool> fetch() {
    if (fetched_for_ != base_) forget();
    fetched_for_ = base_;
    for (const Message& message = messages_[next_]; list_.size() < message.parts;) {
      const StreamRange& part = parts_[message.first + list_.size()];
      auto lease = LACUNA_TRY(endpoint_.keys().lease({own_, base_, *region_, part, room_, rights_, retired_ < next_}, counters_));
      if (!lease) return false;
      list_.push_back(lease->sge(part.bytes));
      leases_.push_back(std::move(*lease));
    }
    return true;
  }
  [[nodiscard]] bool bound() const {
    return std::all_of(leases_.end() - std::ssize(list_), leases_.end(), [](const auto& l) { return l.bound(); });
  }
  [[nodiscard]] std::span<const nic::Sge> list() const { return list_; }
  void posted() {
    list_.clear();
    ++next_;
  }
  // Gives the keys of messages that are done back.
  void retire(std::size_t in_flight) {
    for (; retired_ + in_flight < next_; ++retired_)
      leases_.erase(leases_.begin(), leases_.begin() + static_cast<std::ptrdiff_t>(messages_[retired_].parts));
  }

 private:
  void forget() {
    list_.clear();
    leases_.clear();
  }

  std::vector<StreamRange> parts_;
  std::vector<Message> messages_;
  KeyRoom room_;
  nic::Rights rights_;
  std::size_t next_ = 0;                // message
  std::size_t retired_ = 0;             // messages whose keys were given back
  std::deque<KeyCache::Lease> leases_;  // of messages [retired_, next_), and of the next one as far as it is fetched
  std::vector<nic::Sge> list_;          // of the next message
  std::byte* fetched_for_ = nullptr;
  Warming warming_;
};

class Sender final : public KeyMessages {
 public:
  using KeyMessages::KeyMessages;
  Result<bool> advance() override {
    retire(sends_in_flight());
    while (!posted_all()) {
      if (!LACUNA_TRY(fetch()) || send_room() < 1) return false;
      LACUNA_TRY(send(list(), true));  // signaled, so that its keys come back
      posted();
    }
    return sends_in_flight() == 0;
  }
};

class Receiver final : public KeyMessages {
 public:
  using KeyMessages::KeyMessages;
  Result<bool> advance() override {
    LACUNA_TRY(post_receives());
    retire(receives_posted() - receives_done());
    return posted_all() && receives_done() == receives_posted();
  }

 private:
  Result<void> begin() override {
    LACUNA_TRY(KeyMessages::begin());
    return post_receives();
  }
  // A message may arrive as soon as its receive is posted, so its keys are bound before that.
  Result<void> post_receives() {
    while (!posted_all() && receive_room() && LACUNA_TRY(fetch()) && bound()) {
      LACUNA_TRY(receive(list()));
      posted();
    }
    return {};
  }
};

}  // namespace

Made make_key_messages(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, int keys, const KeyRoom& room) {
  const std::int64_t most = largest_message(endpoint.limits());
  std::vector<StreamRange> parts = cut(transfer.src, transfer.dst, room, most);
  std::vector<Message> messages = group(parts, std::min(keys, endpoint.limits().indirect.keys), most);
  if (role == Role::sender) {
    return std::make_unique<Sender>(endpoint, transfer.src, memory, std::move(parts), std::move(messages), room, false);
  }
  return std::make_unique<Receiver>(endpoint, transfer.dst, memory, std::move(parts), std::move(messages), room, true);
}

}  // namespace lacuna::method
