// Rank 0 makes keys over a list of blocks and times each step, to its completion; what the key stands for is verified
// by sending it to rank 1 at first and at last.
#include "tools/measure/key_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/measure/proof.hpp"

namespace lacuna::measure {
namespace {

constexpr std::int64_t kStride = 3 * Link::kKeyBlock;  // a gap of twice the block

struct Costs {
  std::vector<double> create_us, bind_us, invalidate_us;
};

Result<Layout> layout_of(int entries) { return Layout::hvector(entries, 1, kStride, LACUNA_TRY(Layout::bytes(Link::kKeyBlock))); }

class Sender {
 public:
  static Result<Sender> create(nic::Context& context, const Wire& wire, int entries) {
    Sender sender(context, wire, LACUNA_TRY(nic::RegisteredBuffer::create(context, entries * kStride)));
    write_stream(LACUNA_TRY(layout_of(entries)), sender.memory_.buffer.data(), stream_of(1, entries * Link::kKeyBlock));
    for (std::int64_t i = 0; i < entries; ++i) sender.list_.push_back(sender.memory_.sge(i * kStride, Link::kKeyBlock));
    return sender;
  }

  /// Creates, binds, sends through it if it is to be verified, invalidates, destroys.
  Result<void> once(Costs& costs, bool send) {
    const std::int64_t began = context_.now();
    const nic::IndirectKey key = LACUNA_TRY(context_.create_indirect_key(static_cast<int>(list_.size())));
    const std::int64_t created = context_.now();
    const nic::Binding binding{.key = key.lkey(), .list = list_};
    LACUNA_TRY(wire_.qp->post_send({.opcode = nic::Opcode::bind, .binding = &binding}));
    LACUNA_TRY(wire_.next(context_));
    const std::int64_t bound = context_.now();
    if (send) {
      const nic::Sge stream{0, static_cast<std::uint32_t>(std::ssize(list_) * Link::kKeyBlock), key.lkey()};
      LACUNA_TRY(wire_.qp->post_send({.sg_list = {&stream, 1}}));
      LACUNA_TRY(wire_.next(context_));
    }
    const std::int64_t used = context_.now();
    LACUNA_TRY(wire_.qp->post_send({.opcode = nic::Opcode::invalidate, .rkey = key.rkey()}));
    LACUNA_TRY(wire_.next(context_));
    costs.create_us.push_back(static_cast<double>(created - began) / 1e3);
    costs.bind_us.push_back(static_cast<double>(bound - created) / 1e3);
    costs.invalidate_us.push_back(static_cast<double>(context_.now() - used) / 1e3);
    return {};
  }

 private:
  Sender(nic::Context& context, const Wire& wire, nic::RegisteredBuffer memory)
      : context_(context), wire_(wire), memory_(std::move(memory)) {}
  nic::Context& context_;
  const Wire& wire_;
  nic::RegisteredBuffer memory_;
  std::vector<nic::Sge> list_;
};

struct Check {
  std::int64_t wrong_byte = -1;
};

// Rank 1's part of one verification: receives the stream into contiguous memory and looks at every byte.
Result<void> check(nic::Context& context, const Wire& wire, Mailbox& mailbox, int entries) {
  const std::int64_t bytes = entries * Link::kKeyBlock;
  const nic::RegisteredBuffer memory = LACUNA_TRY(nic::RegisteredBuffer::create(context, bytes));
  const nic::Sge sge = memory.sge(0, bytes);
  LACUNA_TRY(wire.qp->post_recv({.sg_list = {&sge, 1}}));
  LACUNA_TRY(wire.next(context));
  Check verdict;
  const std::vector<std::byte> expected = stream_of(1, bytes);
  const auto differs = std::ranges::mismatch(memory.buffer.bytes(), expected);
  if (differs.in2 != expected.end()) verdict.wrong_byte = differs.in2 - expected.begin();
  return mailbox.send(verdict);
}

void report(Report& to, const Wire& wire, const char* name, const std::vector<double>& samples, const method::Counters& work) {
  Row row{.method = name, .path = wire.qp->path(), .notify = method::Notify::none};
  row.latency_us = median_of(samples);
  row.cpu_send_us = row.latency_us.value;                       // the CPU waits for each step
  row.samples = row.visits = static_cast<int>(samples.size());  // each by itself
  row.send = work;
  to.rows.push_back(std::move(row));
}

}  // namespace

Result<Report> measure_keys(int rank, nic::Context& context, const Wire& wire, Mailbox& mailbox, int entries, const Budget& budget) {
  Report result;
  const nic::IndirectLimits& most = wire.qp->limits().indirect;
  if (most.keys == 0 || entries < 1 || entries > most.entries) {
    const std::string why =
        most.keys == 0 ? most.refusal() : fmt::format("{} entries; an indirect key takes 1 to {}", entries, most.entries);
    for (const char* name : {"create_key", "bind_key", "invalidate_key"})
      result.refusals.push_back({name, wire.qp->path(), method::Notify::none, why, false});
    return result;
  }
  if (rank == 1) {
    for (int i = 0; i < 2; ++i) LACUNA_TRY(check(context, wire, mailbox, entries));
    return result;
  }
  Sender sender = LACUNA_TRY(Sender::create(context, wire, entries));
  Costs first;
  LACUNA_TRY(sender.once(first, true));
  Check verdict = LACUNA_TRY(mailbox.receive<Check>());
  Costs costs;
  const std::int64_t until = context.now() + static_cast<std::int64_t>(budget.budget_ms * 1e6);
  while (costs.bind_us.size() < kFewestVisits || (context.now() < until && std::cmp_less(costs.bind_us.size(), budget.max_samples)))
    LACUNA_TRY(sender.once(costs, false));
  LACUNA_TRY(sender.once(first, true));
  const Check last = LACUNA_TRY(mailbox.receive<Check>());
  if (verdict.wrong_byte < 0) verdict = last;
  if (verdict.wrong_byte >= 0) {
    result.refusals.push_back({"bind_key", wire.qp->path(), method::Notify::none,
                               fmt::format("byte {} of the stream behind a key of {} entries is wrong", verdict.wrong_byte, entries),
                               true});
    return result;
  }
  const method::Counters request{.work_requests = 1, .doorbells = 1, .completions = 1};
  method::Counters binding = request;
  binding.keys_bound = 1;
  binding.key_entries = entries;
  report(result, wire, "create_key", costs.create_us, {.keys_created = 1});
  report(result, wire, "bind_key", costs.bind_us, binding);
  report(result, wire, "invalidate_key", costs.invalidate_us, request);
  return result;
}

}  // namespace lacuna::measure
