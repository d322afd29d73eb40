// libfabric's completions, and those of the seam that are made of them.
//
// An operation is what libfabric gives back with a completion. It belongs to the completion queue and not to its queue
// pair: a provider may give it back after the endpoint was closed, and may write into it until then.
#pragma once

#include <deque>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/ofi/provider.hpp"

namespace lacuna::nic::ofi {

class Context;
class QueuePair;

struct Operation {
  // Of the data endpoint: a message, a write or read, a word (usage.hpp), a receive; of the control endpoint: a
  // message, a receive.
  enum class Kind { message, remote, word, receive, say, hear };
  fi_context2 provider{};      // the provider's own (FI_CONTEXT2)
  QueuePair* owner = nullptr;  // null: it is gone, or the operation is free
  Kind kind = Kind::message;
  std::uint64_t number = 0;  // of the request in its queue, or of the slot
};

/// What libfabric says of one.
struct Outcome {
  int error = 0;  // of libfabric, positive; 0: success
  std::uint64_t flags = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data = 0;
};

class CompletionQueue final : public nic::CompletionQueue {
 public:
  static constexpr std::size_t kReserve = 128;  // completions of our own that a queue has room for besides
  /// `file`: readable once there may be something in the queue; -1: there is none.
  CompletionQueue(Context& context, Owned<fid_cq> queue, int file);
  ~CompletionQueue() override;
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  /// libfabric makes room for more than it is asked for.
  [[nodiscard]] bool overrun() const override { return false; }
  [[nodiscard]] fid_cq* get() const { return queue_.get(); }
  [[nodiscard]] int file() const { return file_; }

  void enroll(QueuePair& pair) { pairs_.push_back(&pair); }
  /// Takes what is its, too: its operations, its completions.
  void withdraw(QueuePair& pair);
  [[nodiscard]] Operation* take(QueuePair& owner, Operation::Kind kind, std::uint64_t number);
  void give_back(Operation* operation);

  /// Takes libfabric's completions out, and drives the queue pairs.
  void progress();
  void push(const Completion& completion) { ready_.push_back(completion); }
  std::size_t pop(std::span<Completion> completions);
  /// There is more to be polled than one poll takes: nothing more is looked for.
  [[nodiscard]] bool enough() const { return ready_.size() >= kAtOnce; }

 private:
  static constexpr std::size_t kAtOnce = 16;  // completions
  void dispatch(void* context, const Outcome& outcome);
  bool take_error();

  Context& context_;
  Owned<fid_cq> queue_;
  int file_;
  std::deque<Operation> operations_;  // whose addresses stay
  std::vector<Operation*> free_;
  std::vector<QueuePair*> pairs_;
  std::deque<Completion> ready_;
};

}  // namespace lacuna::nic::ofi
