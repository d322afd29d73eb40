#include "lacuna/nic/model/hub.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::nic::model {

Hub::Hub(Context& context, CompletionQueue& queue, const QueuePairOptions& options)
    : context_(context),
      queue_(queue),
      options_(options),
      receives_(std::make_shared<Receives>(Receives{.depth = options.max_recv_wr})),
      ends_(context.shared().hubs.size()) {
  context.shared().hubs[static_cast<std::size_t>(context.rank())] = this;
}

Hub::~Hub() {
  context_.shared().hubs[static_cast<std::size_t>(context_.rank())] = nullptr;
  for (const std::shared_ptr<Connection>& end : ends_) {
    if (end != nullptr) end->close();
  }
}

Result<void> Hub::meet(std::int64_t timeout_ns) {
  Shared& shared = context_.shared();
  context_.settle();
  const Time deadline = context_.clock() + timeout_ns * 1000;
  // Of those that made theirs again and again, the last round counts.
  const int ranks = static_cast<int>(shared.hubs.size());
  const int round = shared.hubs_made++ / ranks;
  if (shared.hubs_made % ranks == 0) {
    for (int rank = 0; rank < ranks; ++rank) shared.schedule.wake(rank, context_.clock());
  }
  while (shared.hubs_made / ranks == round) {
    if (shared.schedule.sleep(context_.rank(), deadline, context_.profile().cpu.poll_empty) || shared.hubs_made / ranks != round) continue;
    const int made = shared.hubs_made-- % ranks;  // who comes later does not meet this one
    return base::fail(base::Code::timeout, fmt::format("{} of {} processes made their hub", made, ranks));
  }
  return {};
}

std::shared_ptr<Connection>& Hub::make_end(int peer) {
  std::shared_ptr<Connection>& end = ends_[static_cast<std::size_t>(peer)];
  end = std::make_shared<Connection>(context_, queue_, options_, static_cast<std::uint32_t>(peer), receives_);
  return end;
}

Connection& Hub::connection(int peer) {
  const std::shared_ptr<Connection>& end = ends_[static_cast<std::size_t>(peer)];
  if (end != nullptr) return *end;
  make_end(peer);
  if (Hub* const other = context_.shared().hubs[static_cast<std::size_t>(peer)]; other != nullptr) {
    const std::shared_ptr<Connection>& theirs = peer == context_.rank() ? end : other->make_end(context_.rank());
    end->join(theirs);
    if (theirs != end) theirs->join(end);
  }
  return *end;
}

Result<void> Hub::post_send(int to, const SendRequest& request) {
  if (to < 0 || std::cmp_greater_equal(to, ends_.size()))
    return base::fail(base::Code::invalid_argument, fmt::format("process {}; there are processes 0 to {}", to, ends_.size() - 1));
  if (request.opcode != Opcode::send)
    return base::fail(base::Code::unsupported, fmt::format("a hub only sends; {} needs a queue pair", opcode_name(request.opcode)));
  return connection(to).post_chain({&request, 1});
}

Result<void> Hub::post_recv(const RecvRequest& request) {
  LACUNA_TRY(receives_->post(context_, request));
  receives_->feed(context_.clock());
  return {};
}

Result<std::unique_ptr<nic::QueuePair>> Hub::connect(int peer, int line, nic::CompletionQueue& queue, const QueuePairOptions& options) {
  LACUNA_TRY(context_.check_queues(options));
  context_.settle();
  auto own = std::make_shared<Connection>(context_, static_cast<CompletionQueue&>(queue), options, context_.next_number());
  auto& lines = context_.shared().lines;
  const auto waiting = lines.find({peer, context_.rank(), line});
  if (const auto other = waiting == lines.end() ? nullptr : waiting->second.lock(); other != nullptr) {
    lines.erase(waiting);
    own->join(other);
    other->join(own);
  } else {
    lines[{context_.rank(), peer, line}] = own;
  }
  return std::make_unique<QueuePair>(std::move(own));
}

int Hub::next_fault() {
  if (receives_->failed.empty()) return -1;
  const int peer = receives_->failed.front();
  receives_->failed.pop_front();
  return peer;
}

const base::Error* Hub::fault(int peer) const {
  const std::shared_ptr<Connection>& end = ends_[static_cast<std::size_t>(peer)];
  return end == nullptr ? nullptr : end->fault();
}

}  // namespace lacuna::nic::model
