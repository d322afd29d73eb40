#include "tools/measure/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tools/measure/disturbance.hpp"

namespace lacuna::measure {
namespace {

constexpr std::int64_t kTransferTimeout = 20'000'000'000;  // ns
// Like a message of the middle: most of its time goes to lines that change hands
constexpr std::size_t kProbeBytes = 16384;
constexpr int kProbes = 16;
constexpr int kPasses = 4;
constexpr std::int64_t kShortest = 1;  // ns

// What this rank thinks of a combination, as it travels.
struct Verdict {
  std::int32_t ok = 0;
  std::int32_t reason_bytes = 0;
};

struct Done {
  std::int32_t sample = 0;
};

// Microseconds of arithmetic in the first-level cache, which a core does alone: the median of some. A core that shares
// its units with a busy sibling takes longer.
double time_arithmetic(nic::Context& context) {
  std::vector<double> times;
  std::vector<std::byte> scratch(kProbeBytes);
  for (int i = 0; i <= kProbes; ++i) {
    const std::int64_t began = context.now();
    for (int pass = 0; pass < kPasses; ++pass) lay_pattern(scratch);
    if (i > 0) times.push_back(static_cast<double>(context.now() - began) / 1e3);
  }
  return median_of(std::move(times)).value;
}

}  // namespace

Workbench::Workbench(int rank, nic::Context& context, Mailbox& mailbox, Clocks* clocks, const Case& what, Workspace workspace,
                     const Fault& fault)
    : rank_(rank),
      context_(context),
      mailbox_(mailbox),
      clocks_(clocks),
      case_(what),
      workspace_(std::move(workspace)),
      fault_(fault),
      windows_(what.receive, what.receive_span, what.shared_gaps) {
  for (std::int32_t seed = 0; seed < kSeeds; ++seed)
    streams_.at(static_cast<std::size_t>(seed)) = stream_of(static_cast<std::uint64_t>(seed), what.send.size());
  if (rank == 1) read_.resize(streams_.front().size());
}

Result<void> Workbench::set_up(std::span<const std::unique_ptr<method::Endpoint>> endpoints, const Budget& budget,
                               nic::Bootstrap& bootstrap) {
  const auto wanted = [](const auto& list, const auto& value) { return list.empty() || std::ranges::find(list, value) != list.end(); };
  for (const method::Method& method : measured_methods()) {
    if (!wanted(budget.methods, method.name)) continue;
    for (const auto& endpoint : endpoints) {
      const std::pair where{std::string(method.name), endpoint->qp().path()};
      if (std::ranges::find(budget.leave_out, where) != budget.leave_out.end()) continue;
      for (const method::Notify notify : method.notifies) {
        if (!method.one_sided() || wanted(budget.notifies, notify)) make(method, *endpoint, notify);
      }
    }
  }
  return agree(bootstrap);
}

void Workbench::make(const method::Method& method, method::Endpoint& endpoint, method::Notify notify) {
  Combination combination{.method = &method, .endpoint = &endpoint, .notify = notify, .operation = {}, .refusal = {}};
  auto made = method::make(method, rank_ == 0 ? method::Role::sender : method::Role::receiver, endpoint,
                           {case_.send, case_.receive, notify}, {&workspace_.region()});
  if (made) {
    combination.operation = std::move(*made);
  } else {
    combination.refusal = made.error().text();
  }
  combinations_.push_back(std::move(combination));
}

Result<void> Workbench::agree(nic::Bootstrap& bootstrap) {
  nic::Hello mine;
  const auto append = [&](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    mine.bytes.insert(mine.bytes.end(), from, from + bytes);
  };
  for (const Combination& combination : combinations_) {
    const Verdict verdict{combination.operation ? 1 : 0, static_cast<std::int32_t>(combination.refusal.size())};
    append(&verdict, sizeof verdict);
    append(combination.refusal.data(), combination.refusal.size());
  }
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(mine, kTransferTimeout));
  std::size_t at = 0;
  for (Combination& combination : combinations_) {
    Verdict verdict;
    const std::size_t left = theirs.bytes.size() - at;
    if (left < sizeof verdict) return base::fail(base::Code::malformed, "the other rank made fewer combinations");
    std::memcpy(&verdict, theirs.bytes.data() + at, sizeof verdict);
    at += sizeof verdict;
    if (verdict.reason_bytes < 0 || static_cast<std::size_t>(verdict.reason_bytes) > left - sizeof verdict)
      return base::fail(base::Code::malformed, "the other rank's reasons are cut short");
    if (verdict.ok == 0) {
      combination.operation.reset();
      if (combination.refusal.empty())
        combination.refusal.assign(reinterpret_cast<const char*>(theirs.bytes.data() + at), static_cast<std::size_t>(verdict.reason_bytes));
    }
    at += static_cast<std::size_t>(verdict.reason_bytes);
  }
  return {};
}

// Before a transfer at rank 0. To be verified: the stream, written by the naive walk. Warm: as the program that has
// something new to send would, so that its cache lines belong to this core and no other core has them. Cold memory is
// not looked at; what it holds does not matter then.
void Workbench::write_source(std::byte* base, std::int32_t verify_seed) {
  if (verify_seed >= 0) {
    write_stream(case_.send, base, streams_.at(static_cast<std::size_t>(verify_seed)));
  } else if (!case_.cold()) {
    copy::unpack(case_.send, base, 0, case_.send.size(), streams_.front().data());
  }
}

// The two planted faults. The delay is inside the time that rank 0 takes, and follows what a transfer takes without it.
double Workbench::slow_down(const Combination& combination) {
  if (combination.method->name != fault_.method || fault_.slower <= 1) return 0;
  const double delay_us = combination.honest_us * (fault_.slower - 1);
  const std::int64_t until = context_.now() + static_cast<std::int64_t>(delay_us * 1e3);
  while (context_.wait(until)) continue;
  return delay_us;
}

void Workbench::corrupt(const Combination& combination, std::byte* base) const {
  if (combination.method->name != fault_.method || fault_.corrupt_from < 0 || combination.transfers < fault_.corrupt_from) return;
  layout::Cursor cursor(case_.receive);
  cursor.seek(case_.receive.size() / 2);
  base[cursor.next_run(1).offset] ^= std::byte{0x10};
}

Result<Probe> Workbench::probe() {
  LACUNA_TRY(mailbox_.send(Command{.kind = Command::Kind::probe}));
  const std::vector<std::byte> message(kProbeBytes);
  std::vector<double> times;
  for (int i = 0; i <= kProbes; ++i) {
    const std::int64_t began = context_.now();
    LACUNA_TRY(mailbox_.send(std::span(message)));
    LACUNA_TRY(mailbox_.receive());
    // The first brings the caches into this state
    if (i > 0) times.push_back(static_cast<double>(context_.now() - began) / 2e3);
  }
  const double receiver_us = LACUNA_TRY(mailbox_.receive<double>());
  return Probe{median_of(std::move(times)).value, time_arithmetic(context_), receiver_us};
}

Result<void> Workbench::answer_probe() {
  for (int i = 0; i <= kProbes; ++i) {
    const auto message = LACUNA_TRY(mailbox_.receive());
    LACUNA_TRY(mailbox_.send(message));
  }
  return mailbox_.send(time_arithmetic(context_));
}

Result<void> Workbench::set_clocks() {
  LACUNA_TRY(mailbox_.send(Command{.kind = Command::Kind::clocks}));
  return clocks_->look(context_, mailbox_);
}

// The mails around one transfer:
//
//   rank 0                              rank 1
//   target (where rank 1 initiates) ──▶ prepare, start
//   time 0, start, run ◀── target ───── run: data in place, time 1
//   done ──▶ / ◀── done                 if the passive end is not told otherwise
Result<Timed> Workbench::visit(Command command) {
  command.kind = Command::Kind::visit;
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  method::Operation& operation = *combination.operation;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  double delay_us = 0;
  Timed timed;
  if (clocks_ != nullptr && clocks_->stale(context_.now())) LACUNA_TRY(set_clocks());
  LACUNA_TRY(mailbox_.send(command));
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    std::byte* base = workspace_.base(transfers_++);
    write_source(base, command.verify_seed);
    const method::Target mine = LACUNA_TRY(combination.endpoint->prepare(operation, base, kTransferTimeout));
    if (combination.method->initiator == method::Role::receiver) LACUNA_TRY(mailbox_.send(std::span<const std::byte>(mine.encode())));
    const method::Target theirs = LACUNA_TRY(method::Target::decode(LACUNA_TRY(mailbox_.receive(combination.endpoint))));
    const std::int64_t busy = context_.busy_ns();
    starts.push_back(context_.now());
    delay_us = slow_down(combination);
    LACUNA_TRY(operation.start(base, theirs));
    LACUNA_TRY(combination.endpoint->run(operation, kTransferTimeout));
    ends.push_back(context_.now());
    // The data moves while this waits
    if (combination.uninformed(0)) LACUNA_TRY(mailbox_.receive<Done>(combination.endpoint));
    timed.cpu_send_us.push_back(static_cast<double>(context_.busy_ns() - busy) / 1e3);
    timed.copy_send_us.push_back(static_cast<double>(operation.counters().copy_ns) / 1e3);
    if (combination.uninformed(1)) LACUNA_TRY(mailbox_.send(Done{sample}));
  }
  const Visit theirs = LACUNA_TRY(mailbox_.receive<Visit>());
  if (clocks_ != nullptr) LACUNA_TRY(set_clocks());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t there = LACUNA_TRY(plausible(theirs.end_ns[i]));
    const std::int64_t end = combination.uninformed(1) ? ends[i] : clocks_ != nullptr ? clocks_->ours(there) : there;
    // Clocks that are set by messages may well say that the shortest transfers took no time.
    timed.latency_us.push_back(static_cast<double>(clocks_ != nullptr ? std::max(end - starts[i], kShortest) : end - starts[i]) / 1e3);
    timed.cpu_recv_us.push_back(static_cast<double>(LACUNA_TRY(plausible(theirs.busy_ns[i]))) / 1e3);
    timed.copy_recv_us.push_back(static_cast<double>(LACUNA_TRY(plausible(theirs.copy_ns[i]))) / 1e3);
  }
  combination.honest_us = timed.latency_us.back() - delay_us;
  peers_preemptions_ = theirs.preemptions;
  timed.send = operation.counters();
  timed.receive = theirs.counters;
  timed.wrong.assign(theirs.wrong.data(), strnlen(theirs.wrong.data(), theirs.wrong.size()));
  return timed;
}

Result<Visit> Workbench::take_part(const Command& command) {
  if (command.kind != Command::Kind::visit || command.combination < 0 || command.combination >= std::ssize(combinations_) ||
      command.samples < 1 || command.samples > Visit::kMost || command.verify_seed >= kSeeds ||
      !combinations_[static_cast<std::size_t>(command.combination)].operation) {
    return base::fail(base::Code::malformed, "rank 0 asks for what is not there");
  }
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  method::Operation& operation = *combination.operation;
  Visit visit;
  std::byte* base = nullptr;
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    base = workspace_.base(transfers_++);
    if (command.verify_seed >= 0 && !clean_) poison(case_.receive, base);
    method::Target theirs;
    if (combination.method->initiator == method::Role::receiver)
      theirs = LACUNA_TRY(method::Target::decode(LACUNA_TRY(mailbox_.receive())));
    const method::Target mine = LACUNA_TRY(combination.endpoint->prepare(operation, base, kTransferTimeout));
    const std::int64_t before = context_.busy_ns();
    LACUNA_TRY(operation.start(base, theirs));
    const std::int64_t started = context_.busy_ns() - before;
    LACUNA_TRY(mailbox_.send(std::span<const std::byte>(mine.encode())));
    const std::int64_t busy = context_.busy_ns() - started;  // starting is the transfer's, the mail is not
    if (combination.uninformed(1)) {
      // The data moves while this waits, where it needs this CPU
      LACUNA_TRY(mailbox_.receive<Done>(combination.endpoint));
    }
    LACUNA_TRY(combination.endpoint->run(operation, kTransferTimeout));
    const auto i = static_cast<std::size_t>(sample);
    visit.end_ns[i] = context_.now() + fault_.skew_ns.value_or(0);
    visit.busy_ns[i] = context_.busy_ns() - busy;
    visit.copy_ns[i] = operation.counters().copy_ns;
    if (combination.uninformed(0)) LACUNA_TRY(mailbox_.send(Done{sample}));
    corrupt(combination, base);
    ++combination.transfers;
    // As the program that waited for the data would: its cache lines come to this core before the next transfer
    // overwrites them.
    if (!case_.cold() && command.verify_seed < 0) copy::pack(case_.receive, base, 0, case_.receive.size(), read_.data());
  }
  visit.counters = operation.counters();
  visit.preemptions = preemptions();
  clean_ = command.verify_seed >= 0 && !case_.cold();  // cold, another copy has its turn next
  if (command.verify_seed >= 0) {
    const std::string wrong = examine(case_.receive, base, windows_, streams_.at(static_cast<std::size_t>(command.verify_seed)));
    std::memcpy(visit.wrong.data(), wrong.data(), std::min(wrong.size(), visit.wrong.size() - 1));
  }
  return visit;
}

Result<void> Workbench::follow() {
  for (;;) {
    const Command command = LACUNA_TRY(mailbox_.receive<Command>());
    if (command.kind == Command::Kind::finish) break;
    if (command.kind == Command::Kind::probe) {
      LACUNA_TRY(answer_probe());
    } else if (command.kind == Command::Kind::clocks) {
      LACUNA_TRY(Clocks::answer(context_, mailbox_, fault_.skew_ns.value_or(0)));
    } else {
      LACUNA_TRY(mailbox_.send(LACUNA_TRY(take_part(command))));
    }
  }
  // The ground as it was: what no case is using holds the pattern.
  for (std::int64_t copy = 0; copy < std::min(transfers_, workspace_.copies()); ++copy) poison(case_.receive, workspace_.base(copy));
  return {};
}

}  // namespace lacuna::measure
