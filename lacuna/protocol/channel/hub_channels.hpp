// The channels of a rank that reaches all others by a hub of its NIC (nic::Hub). They have one memory, one queue of
// receives and one of completions, so registered memory does not grow with the peers, and one look finds what any of
// them sent. What a rank keeps of a peer is made when they first talk.
//
// No credit goes back and forth: a peer's head that comes while no receive is posted comes again (the NIC's work). A
// send waits while all buffers for sends are in use.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/channel/head.hpp"

namespace lacuna::protocol {

using base::Result;

class Channel;

class HubChannels {
 public:
  /// All ranks at the same time. Errors: those of nic::Context::create_hub(); limit.
  static Result<std::unique_ptr<HubChannels>> create(nic::Context& context);
  ~HubChannels();
  HubChannels(const HubChannels&) = delete;
  HubChannels& operator=(const HubChannels&) = delete;

  /// Heads to a peer. What comes from there comes by next(), and not by the channel.
  std::unique_ptr<Channel> channel(int peer);
  /// Whether a head can go now.
  [[nodiscard]] bool has_room() const { return claimed_ >= 0 || !free_.empty(); }
  /// The oldest head that has come, and in `from` its sender; it stays until pop(). Errors, of that rank: malformed.
  Result<bool> next(Arrived& arrival, int& from);
  void pop();
  /// The peers whose channels may have a fault. Progress takes a peer away once it has looked, and found all that is to
  /// be found.
  std::vector<int>& failing();
  [[nodiscard]] nic::Hub& hub() const { return *hub_; }

 private:
  class One;
  struct Came {
    int from;
    int receive;
    std::size_t bytes;
  };
  HubChannels(nic::Context& context, nic::RegisteredBuffer memory, int receives, int sends);
  Result<void> open();
  [[nodiscard]] std::byte* slot(int number) const;
  /// Where the next head and its payload are written; null while there is no room.
  [[nodiscard]] std::byte* claim();
  Result<void> send(int to, const Head& head);
  [[nodiscard]] int in_flight() const { return sends_ - static_cast<int>(free_.size()) - (claimed_ >= 0 ? 1 : 0); }
  Result<void> post(int receive);
  void post_again();
  void tell_given_up();
  /// `all`: until all was seen; else until something came.
  void poll(bool all = false);

  nic::Context& context_;
  nic::RegisteredBuffer memory_;  // of each receive, then of each send
  int receives_, sends_;
  std::unique_ptr<nic::CompletionQueue> queue_;
  std::unique_ptr<nic::Hub> hub_;
  std::vector<int> free_;  // slots for sends
  int claimed_ = -1;       // one that is being written; -1: none
  std::deque<Came> arrived_;
  std::vector<int> unposted_;  // receives that were refused
  std::vector<int> given_up_;  // peers to be told that they are lost to this rank
  std::vector<int> failing_;
};

}  // namespace lacuna::protocol
