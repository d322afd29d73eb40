// Endpoints and operations: who posted what, and which of it is done.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/method/method.hpp"
#include "lacuna/method/staging.hpp"

namespace lacuna::method {

Result<std::unique_ptr<Endpoint>> Endpoint::connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path,
                                                    const Options& options) {
  auto queue = LACUNA_TRY(context.create_completion_queue(options.max_send_wr + options.max_recv_wr));
  auto qp = LACUNA_TRY(context.connect(bootstrap, *queue, {path, options.max_send_wr, options.max_recv_wr}));
  return std::unique_ptr<Endpoint>(new Endpoint(context, std::move(queue), std::move(qp), options));
}

int Endpoint::poll() {
  std::array<nic::Completion, 32> completions;
  const int n = context_.poll(*queue_, completions);
  for (int i = 0; i < n; ++i) {
    const auto found = operations_.find(static_cast<std::uint32_t>(completions[i].wr_id >> 32));
    if (found != operations_.end()) found->second->complete(completions[i]);  // else its operation ended early
  }
  return n;
}

Result<void> Endpoint::run(Operation& operation, std::int64_t timeout_ns) {
  const std::int64_t deadline = context_.now() + timeout_ns;
  for (;;) {
    if (LACUNA_TRY(operation.progress())) return {};
    if (poll() > 0) continue;
    if (const base::Error* fault = qp_->fault()) {
      if (LACUNA_TRY(operation.progress())) return {};  // the peer may have finished just before it went
      return std::unexpected(*fault);
    }
    if (Result<void> waited = context_.wait(deadline); !waited) {
      return base::fail(waited.error().code, fmt::format("the transfer did not end within {} ms", timeout_ns / 1'000'000));
    }
  }
}

Operation::Operation(Endpoint& endpoint)
    : endpoint_(endpoint), token_(++endpoint.tokens_), send_window_(static_cast<std::uint32_t>(endpoint.options().max_send_wr)) {
  endpoint_.operations_[token_] = this;
}

Operation::~Operation() { endpoint_.operations_.erase(token_); }

Result<void> Operation::start(std::byte* base, const Target& target) {
  const std::span<std::byte> bytes = region_->bytes();
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base) - reinterpret_cast<std::intptr_t>(bytes.data()));
  const std::int64_t low = offset + layout_->true_lower_bound();
  if (layout_->size() > 0 && (low < 0 || low + layout_->true_extent() > static_cast<std::int64_t>(bytes.size()))) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("the layout covers bytes {} to {} of a region of {}", low, low + layout_->true_extent(), bytes.size()));
  }
  base_ = base;
  target_ = target;
  receives_posted_ = receives_done_ = 0;
  return begin();
}

Result<void> Operation::send(std::span<const nic::Sge> list) {
  return endpoint_.qp().post_send({.wr_id = wr_id(++sends_posted_), .opcode = nic::Opcode::send, .sg_list = list});
}

Result<void> Operation::write(std::span<const nic::Sge> list, std::uint64_t addr, std::uint32_t rkey, bool last) {
  ++sends_posted_;
  const bool signaled = last || sends_posted_ % std::max(1U, send_window_ / 4) == 0;  // a signal retires all before it
  return endpoint_.qp().post_send({.wr_id = wr_id(sends_posted_),
                                   .opcode = nic::Opcode::write,
                                   .sg_list = list,
                                   .remote_addr = addr,
                                   .rkey = rkey,
                                   .signaled = signaled});
}

Result<void> Operation::receive(std::span<const nic::Sge> list) {
  return endpoint_.qp().post_recv({.wr_id = wr_id(++receives_posted_), .sg_list = list});
}

void Operation::complete(const nic::Completion& completion) {
  if (completion.status != nic::Status::success) {
    failed_ = true;
  } else if (completion.opcode == nic::Opcode::recv) {
    ++receives_done_;
  } else {
    sends_done_ = static_cast<std::uint32_t>(completion.wr_id);
  }
}

Result<void> Operation::healthy() const {
  if (!failed_) return {};
  if (const base::Error* fault = endpoint_.qp().fault()) return std::unexpected(*fault);
  return base::fail(base::Code::transfer, "a request of this operation failed");
}

Result<Staging> Staging::create(nic::Context& context, std::int64_t bytes) {
  Staging staging;
  staging.buffer = LACUNA_TRY(context.allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  staging.region = LACUNA_TRY(context.register_memory(staging.buffer.bytes(), {}));
  return staging;
}

bool reachable(const Endpoint& endpoint, const nic::Region& region) {
  const nic::PathInfo* path = endpoint.limits().path(endpoint.qp().path());
  return path == nullptr || !path->shared_only || region.shared();
}

Result<Flag> Flag::create(nic::Context& context) { return Flag(LACUNA_TRY(Staging::create(context, sizeof(std::uint64_t)))); }

}  // namespace lacuna::method
