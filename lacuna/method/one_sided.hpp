// What the one-sided methods share: a stream of writes, then the flag. A method says what the next write is.
#pragma once

#include "lacuna/method/staging.hpp"

namespace lacuna::method {

/// Splits a run or piece so that each part fits one work request and one sge.
[[nodiscard]] std::int64_t largest_write(const nic::Limits& limits);

class WriteSender : public Operation {
 public:
  WriteSender(Endpoint& endpoint, Transfer transfer, const Memory& memory, Flag flag)
      : Operation(endpoint), transfer_(std::move(transfer)), flag_(std::move(flag)) {
    layout_ = &transfer_.src;
    region_ = memory.region;
  }
  Result<void> begin() final;
  Result<bool> progress() final;

 protected:
  virtual void rewind() = 0;
  [[nodiscard]] virtual bool exhausted() const = 0;
  /// Posts the next write; `last` if nothing will follow it, when exhausted() becomes true.
  virtual Result<void> post_next() = 0;
  [[nodiscard]] nic::Sge sge(layout::Run run) const {
    return {reinterpret_cast<std::uint64_t>(base_ + run.offset), static_cast<std::uint32_t>(run.length), region_->lkey()};
  }
  /// A write after which nothing follows has to be signaled.
  [[nodiscard]] bool final_write() const { return exhausted() && transfer_.notify == Notify::none; }

  Transfer transfer_;

 private:
  Flag flag_;
  bool flagged_ = false;
};

}  // namespace lacuna::method
