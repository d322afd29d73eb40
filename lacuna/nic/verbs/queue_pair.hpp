// A reliable connection of a device.
#pragma once

#include "lacuna/nic/verbs/context.hpp"

namespace lacuna::nic::verbs {

class QueuePair final : public nic::QueuePair {
 public:
  /// Made, not connected. Errors: limit (with the device's words), out_of_memory.
  static Result<std::unique_ptr<QueuePair>> create(Context& context, CompletionQueue& queue, const QueuePairOptions& options);
  QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Owned<ibv_qp> pair);
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return pair_->qp_num; }
  [[nodiscard]] Path path() const override { return Path::wire; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const SendRequest> chain) override;
  Result<void> post_recv(const RecvRequest& request) override;
  [[nodiscard]] const base::Error* fault() const override { return fault_ ? &*fault_ : nullptr; }

  /// What a queue pair has to know of its peer's.
  struct Remote {
    std::uint32_t number = 0;
    std::uint32_t packet_number = 0;
    std::uint32_t lid = 0;
    std::uint32_t mtu = 0;    // ibv_mtu
    std::uint32_t reads = 0;  // that it answers at once
    std::uint32_t has_gid = 0;
    ibv_gid gid{};
  };
  /// Through the states of a connection, to the peer's queue pair. Errors: io, with what the device refused.
  Result<void> connect(const Remote& remote, std::uint32_t packet_number);
  /// The peer is connected, too.
  void open(Limits limits) {
    limits_ = std::move(limits);
    connected_ = true;
  }

  [[nodiscard]] CompletionQueue& queue() const { return queue_; }
  [[nodiscard]] ibv_qp* get() const { return pair_.get(); }
  /// What a completion of this queue pair says; nothing, if it is of a request of our own.
  std::optional<Completion> take(const ibv_wc& done);
  /// In error, by the first cause; everything that is posted is flushed.
  void fail(base::Error why);
  /// Writes nothing to the peer: if it is gone, that fails.
  void beat();

 private:
  struct Posted {
    std::uint64_t wr_id;
    Opcode opcode;
  };
  Result<void> modify(ibv_qp_attr& attributes, int mask, const char* state);
  [[nodiscard]] Result<void> check(const SendRequest& request) const;
  [[nodiscard]] bool binds_key(const SendRequest& request) const;  // and not a window
  ibv_send_wr work_request(const SendRequest& request);
  int post_by_builders(std::span<const SendRequest> chain);

  Context& context_;
  CompletionQueue& queue_;
  QueuePairOptions options_;
  Limits limits_;
  Owned<ibv_qp> pair_;
  std::vector<Posted> sends_;         // by sequence, modulo the depth
  std::vector<std::uint64_t> recvs_;  // wr_id
  std::uint64_t sends_posted_ = 0, sends_retired_ = 0;
  std::uint64_t recvs_posted_ = 0, recvs_retired_ = 0;
  std::vector<ibv_send_wr> chain_;  // room for a chain
  std::vector<ibv_data_buf> buffers_;
  std::optional<base::Error> fault_;
  bool connected_ = false;
  bool beating_ = false;
};

/// What a failed request means to a person.
[[nodiscard]] std::string cause_of(const ibv_wc& done, const Context& context);

}  // namespace lacuna::nic::verbs
