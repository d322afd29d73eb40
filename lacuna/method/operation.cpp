// Endpoints and operations: who posted what, and which of it is done.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/base/rarely.hpp"
#include "lacuna/method/key_cache.hpp"
#include "lacuna/method/method.hpp"
#include "lacuna/method/staging.hpp"

namespace lacuna::method {

Endpoint::Endpoint(nic::Context& context, std::unique_ptr<nic::CompletionQueue> queue, std::unique_ptr<nic::QueuePair> qp,
                   const Options& options)
    : context_(context),
      options_(options),
      queue_(std::move(queue)),
      qp_(std::move(qp)),
      keys_(std::make_unique<KeyCache>(*this, qp_->limits().indirect.keys)),
      words_(std::make_unique<Words>()) {}

Endpoint::~Endpoint() = default;

Result<std::unique_ptr<Endpoint>> Endpoint::connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path,
                                                    const Options& options) {
  const auto make = [&](nic::CompletionQueue& queue, const nic::QueuePairOptions& wanted) {
    return context.connect(bootstrap, queue, wanted);
  };
  return connect(context, make, path, options);
}

Result<std::unique_ptr<Endpoint>> Endpoint::connect(nic::Context& context, const Connect& make, nic::Path path, const Options& options) {
  auto queue = LACUNA_TRY(context.create_completion_queue(options.max_send_wr + options.max_recv_wr));
  auto qp = LACUNA_TRY(make(*queue, {path, options.max_send_wr, options.max_recv_wr}));
  return std::unique_ptr<Endpoint>(new Endpoint(context, std::move(queue), std::move(qp), options));
}

int Endpoint::poll() {
  std::array<nic::Completion, 32> completions;
  const int n = context_.poll(*queue_, completions);
  for (int i = 0; i < n; ++i) {
    const nic::Completion& completion = completions[static_cast<std::size_t>(i)];
    if (completion.opcode != nic::Opcode::recv && completion.opcode != nic::Opcode::recv_imm && !signaled_.empty()) {
      sends_retired_ = signaled_.front();
      signaled_.pop_front();
    }
    const auto token = static_cast<std::uint32_t>(completion.wr_id >> 32);
    if (token == 0) {
      keys_->complete(completion);
    } else if (const auto found = operations_.find(token); found != operations_.end()) {
      found->second->complete(completion);  // else its operation ended early
    }
  }
  return n;
}

Result<void> Endpoint::post(std::span<nic::SendRequest> chain, Counters& counters) {
  // A quarter of the queue may be silent: its places come back before the rest is used up.
  const int most_silent = std::max(1, options_.max_send_wr / 4) - 1;
  int silent = silent_;
  std::int64_t sges = 0;
  for (nic::SendRequest& request : chain) {
    if (silent >= most_silent) request.signaled = true;
    silent = request.signaled ? 0 : silent + 1;
    sges += std::ssize(request.sg_list);
  }
  LACUNA_TRY(qp_->post_chain(chain));
  silent_ = silent;
  for (const nic::SendRequest& request : chain) {
    ++sends_posted_;
    if (!request.signaled) continue;
    signaled_.push_back(sends_posted_);
    ++counters.completions;
  }
  counters.sges += sges;
  counters.work_requests += std::ssize(chain);
  ++counters.doorbells;
  return {};
}

Result<std::shared_ptr<const nic::RegisteredBuffer>> Endpoint::staging(std::int64_t bytes) {
  if (staging_ == nullptr || std::cmp_less(staging_->buffer.size(), bytes)) {
    nic::RegisteredBuffer memory = LACUNA_TRY(nic::RegisteredBuffer::create(context_, bytes, {.relaxed = true}));
    std::ranges::fill(memory.buffer.bytes(), std::byte{0});  // no transfer shall pay for the page faults
    staging_ = std::make_shared<const nic::RegisteredBuffer>(std::move(memory));
  }
  return staging_;
}

// Repeats step() until it says true, polling in between.
Result<void> Endpoint::until(const auto& step, std::int64_t timeout_ns, const char* what) {
  const std::int64_t deadline = context_.now() + timeout_ns;
  for (;;) {
    if (LACUNA_TRY(step())) return {};
    if (poll() > 0) continue;
    if (const base::Error* fault = qp_->fault()) {
      LACUNA_RARELY("endpoint: the peer is gone while it is waited for");
      if (LACUNA_TRY(step())) return {};  // the peer may have finished just before it went
      return std::unexpected(*fault);
    }
    if (Result<void> waited = context_.wait(deadline); !waited)
      return base::fail(waited.error().code, fmt::format("{} did not end within {} ms", what, timeout_ns / 1'000'000));
  }
}

Result<Target> Endpoint::prepare(Operation& operation, std::byte* base, std::int64_t timeout_ns) {
  LACUNA_TRY(operation.prepare(base));
  Target target;
  const auto step = [&]() -> Result<bool> {
    std::optional<Target> ready = LACUNA_TRY(operation.target());
    if (ready) target = std::move(*ready);
    return ready.has_value();
  };
  LACUNA_TRY(until(step, timeout_ns, "the preparation"));
  return target;
}

Result<void> Endpoint::run(Operation& operation, std::int64_t timeout_ns) {
  return until([&] { return operation.progress(); }, timeout_ns, "the transfer");
}

Result<void> Endpoint::forget(const nic::Region& region, std::int64_t timeout_ns) {
  return until([&] { return keys_->forget(region); }, timeout_ns, "forgetting a region");
}

Operation::Operation(Endpoint& endpoint, Layout own, const Memory& memory)
    : endpoint_(endpoint), own_(std::move(own)), region_(memory.region), token_(++endpoint.tokens_) {
  endpoint_.operations_[token_] = this;
}

Operation::~Operation() {
  endpoint_.operations_.erase(token_);
  if (endpoint_.active_ == this) endpoint_.active_ = nullptr;
}

Result<void> Operation::prepare(std::byte* base) {
  if (fresh_ && base == base_) return {};
  const std::span<std::byte> bytes = region_->bytes();
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base) - reinterpret_cast<std::intptr_t>(bytes.data()));
  const std::int64_t low = offset + own_.true_lower_bound();
  if (own_.size() > 0 && (low < 0 || low + own_.true_extent() > static_cast<std::int64_t>(bytes.size()))) {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("the layout covers bytes {} to {} of a region of {}", low, low + own_.true_extent(), bytes.size()));
  }
  prepared_ = prepared_ && base == base_;
  base_ = base;
  counters_ = {};
  fresh_ = true;
  return {};
}

Result<std::optional<Target>> Operation::target() {
  LACUNA_TRY(healthy());
  if (!prepared_) prepared_ = LACUNA_TRY(prepare_more());
  if (!prepared_) return std::nullopt;
  return offer();
}

Result<void> Operation::start(std::byte* base, const Target& peer) {
  if (endpoint_.active_ != nullptr)
    return base::fail(base::Code::invalid_argument, "an operation of this endpoint is under way; end it first, or use another endpoint");
  LACUNA_TRY(prepare(base));
  peer_ = peer;
  LACUNA_TRY(check_peer());
  fresh_ = false;
  receives_posted_ = receives_done_ = 0;
  endpoint_.active_ = this;
  return begin();
}

Result<bool> Operation::progress() {
  LACUNA_TRY(healthy());
  const bool done = LACUNA_TRY(advance());
  if (done && endpoint_.active_ == this) endpoint_.active_ = nullptr;
  return done;
}

Result<void> Operation::post(std::span<nic::SendRequest> chain) {
  for (nic::SendRequest& request : chain) request.wr_id = wr_id(++sends_posted_);
  return endpoint_.post(chain, counters_);
}

Result<void> Operation::send(std::span<const nic::Sge> list, bool signaled) {
  nic::SendRequest request{.opcode = nic::Opcode::send, .sg_list = list, .signaled = signaled};
  return post({&request, 1});
}

Result<void> Operation::receive(std::span<const nic::Sge> list) {
  ++counters_.receives;
  ++counters_.completions;
  counters_.sges += std::ssize(list);
  return endpoint_.qp().post_recv({.wr_id = wr_id(++receives_posted_), .sg_list = list});
}

void Operation::complete(const nic::Completion& completion) {
  if (completion.status != nic::Status::success) {
    failed_ = true;
  } else if (completion.opcode == nic::Opcode::recv || completion.opcode == nic::Opcode::recv_imm) {
    ++receives_done_;
  } else {
    sends_done_ = static_cast<std::uint32_t>(completion.wr_id);
  }
}

Result<void> Operation::healthy() const {
  if (!failed_) return {};
  LACUNA_RARELY("operation: a request failed");
  if (const base::Error* fault = endpoint_.qp().fault()) return std::unexpected(*fault);
  return base::fail(base::Code::transfer, "a request of this operation failed");
}

void Operation::pack(std::int64_t position, std::int64_t length, std::byte* out) {
  const std::int64_t began = endpoint_.context().now();
  endpoint_.context().pack(own_, base_, position, length, out, copy::Caching::asked);
  counters_.copy_ns += endpoint_.context().now() - began;
  counters_.bytes_copied += length;
}

void Operation::unpack(std::int64_t position, std::int64_t length, const std::byte* in) {
  const std::int64_t began = endpoint_.context().now();
  endpoint_.context().unpack(own_, base_, position, length, in, copy::Caching::asked);
  counters_.copy_ns += endpoint_.context().now() - began;
  counters_.bytes_copied += length;
}

}  // namespace lacuna::method
