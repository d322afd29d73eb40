#include "lacuna/nic/ofi/completion_queue.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lacuna/nic/ofi/context.hpp"
#include "lacuna/nic/ofi/queue_pair.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr int kRounds = 4;  // of kAtOnce completions in one poll, so that none lasts for ever

}  // namespace

CompletionQueue::CompletionQueue(Context& context, Owned<fid_cq> queue, int file)
    : context_(context), queue_(std::move(queue)), file_(file) {
  context_.enroll(*this);
}

CompletionQueue::~CompletionQueue() {
  const auto lock = context_.used();
  context_.withdraw(*this);
  queue_.reset();
}

void CompletionQueue::withdraw(QueuePair& pair) {
  std::erase(pairs_, &pair);
  std::erase_if(ready_, [&](const Completion& completion) { return completion.qp_num == pair.number(); });
  for (Operation& operation : operations_) {
    if (operation.owner == &pair) operation.owner = nullptr;
  }
}

Operation* CompletionQueue::take(QueuePair& owner, Operation::Kind kind, std::uint64_t number) {
  if (free_.empty()) free_.push_back(&operations_.emplace_back());
  Operation* operation = free_.back();
  free_.pop_back();
  operation->owner = &owner;
  operation->kind = kind;
  operation->number = number;
  return operation;
}

void CompletionQueue::give_back(Operation* operation) {
  operation->owner = nullptr;
  free_.push_back(operation);
}

void CompletionQueue::dispatch(void* context, const Outcome& outcome) {
  if (context == nullptr) return;
  auto* operation = reinterpret_cast<Operation*>(context);
  QueuePair* owner = operation->owner;
  const Operation::Kind kind = operation->kind;
  const std::uint64_t number = operation->number;
  give_back(operation);
  if (owner != nullptr) owner->take(kind, number, outcome);
}

bool CompletionQueue::take_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1) return false;
  dispatch(entry.op_context, {entry.err == 0 ? FI_EOTHER : entry.err, entry.flags, entry.len, entry.data});
  return true;
}

void CompletionQueue::progress() {
  std::array<fi_cq_data_entry, kAtOnce> done;
  for (int round = 0; round < kRounds; ++round) {
    const ssize_t found = fi_cq_read(queue_.get(), done.data(), done.size());
    if (found == -FI_EAVAIL) {
      if (!take_error()) break;
      continue;
    }
    if (found <= 0) break;
    for (const fi_cq_data_entry& one : std::span(done).first(static_cast<std::size_t>(found)))
      dispatch(one.op_context, {0, one.flags, one.len, one.data});
    if (std::cmp_less(found, done.size())) break;  // another look takes time, in which what was found waits
  }
  for (QueuePair* pair : pairs_) pair->advance();
}

std::size_t CompletionQueue::pop(std::span<Completion> completions) {
  const std::size_t count = std::min(completions.size(), ready_.size());
  std::copy_n(ready_.begin(), count, completions.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace lacuna::nic::ofi
