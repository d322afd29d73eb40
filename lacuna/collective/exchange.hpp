// The one Exchange that there is: what differs between alltoallw, neighbours and transpose is what a rank brings to it.
#pragma once

#include "lacuna/collective/agreement.hpp"
#include "lacuna/collective/schedules.hpp"

namespace lacuna::collective {

struct Request {
  ExchangeKind kind = ExchangeKind::alltoallw;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::uint64_t shape = 0;             ///< of what all ranks have to say alike
  std::optional<base::Error> refused;  ///< why it cannot be; the others have to be told
};

class Agreed final : public Exchange {
 public:
  Agreed(Communicator& ranks, Request request, const Options& options);

  Result<void> start() override;
  Result<bool> test() override { return go_on(0); }
  Result<bool> wait_for(std::int64_t timeout_ns) override { return go_on(std::max<std::int64_t>(timeout_ns, 1)); }
  Result<void> wait() override;
  [[nodiscard]] const std::optional<Choice>& choice() const override { return choice_; }
  [[nodiscard]] std::string explain() const override;

 private:
  Result<void> check(const Request& request) const;
  Result<void> check_own() const;
  [[nodiscard]] Terms terms(std::uint64_t shape);
  Result<void> decide(const Terms& all);
  Result<Choice> agreed(const Terms& all) const;
  void begin(const Choice& choice);
  Result<bool> go_on(std::int64_t timeout_ns);

  Communicator& ranks_;
  Options options_;
  ExchangeKind kind_;
  Work work_;
  Terms mine_;
  Sizes send_sizes_, receive_sizes_;
  std::optional<base::Error> refused_, failed_;
  std::optional<Choice> choice_;
  bool under_way_ = false;
  Combining combining_;
  Misfit misfit_;
  Round direct_;
  Forwarding forwarding_;
  Program program_;  // behind what it goes through
};

}  // namespace lacuna::collective
