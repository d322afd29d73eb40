// hub: messages of one process with all others of its world, over connections that are made when they are first used.
// A connection is two ends, as that of two queue pairs is; the process that uses it first makes both. It costs no time.
#pragma once

#include "lacuna/nic/model/queue_pair.hpp"

namespace lacuna::nic::model {

class Hub final : public nic::Hub {
 public:
  Hub(Context& context, CompletionQueue& queue, const QueuePairOptions& options);
  ~Hub() override;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  /// Waits until all processes of the world have theirs. Errors: timeout.
  Result<void> meet(std::int64_t timeout_ns);

  Result<void> post_send(int to, const SendRequest& request) override;
  Result<void> post_recv(const RecvRequest& request) override;
  Result<std::unique_ptr<nic::QueuePair>> connect(int peer, int line, nic::CompletionQueue& queue,
                                                  const QueuePairOptions& options) override;
  [[nodiscard]] const base::Error* fault(int peer) const override;
  int next_fault() override;

 private:
  /// The own end of the connection with a process, and its other end unless that process has no hub any more.
  Connection& connection(int peer);
  std::shared_ptr<Connection>& make_end(int peer);

  Context& context_;
  CompletionQueue& queue_;
  QueuePairOptions options_;
  std::shared_ptr<Receives> receives_;
  std::vector<std::shared_ptr<Connection>> ends_;  // by process; null: not used yet
};

}  // namespace lacuna::nic::model
