#include "lacuna/guide/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::guide {
namespace {

constexpr std::int64_t kTransferTimeout = 20'000'000'000;  // ns
constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// What this rank thinks of a combination, as it travels.
struct Verdict {
  std::int32_t ok = 0;
  std::int32_t reason_bytes = 0;
};

struct Done {
  std::int32_t sample = 0;
};

std::int64_t stride_of(std::int64_t span) { return round_up(span + 2 * kGuard, 4096); }

// How many copies of its buffers both ranks have. Cold transfers through all of them touch twice the last-level cache, so a copy has been
// evicted when its turn comes again. What counts are the lines that a transfer touches, not the gaps.
std::int64_t copies_of(const Case& what, bool cold) {
  if (!cold) return 1;
  const auto touched = [](const Layout& layout, std::int64_t span) { return std::min(span, layout.size() + 64 * layout.run_count()); };
  const std::int64_t fewest_touched =
      std::max<std::int64_t>(64, std::min(touched(what.send, what.send_span), touched(what.receive, what.receive_span)));
  const std::int64_t llc = std::max<std::int64_t>(base::machine().llc_bytes, 32 << 20);
  return std::max<std::int64_t>(
      2, std::min(2 * llc / fewest_touched + 1, kMostMemory / stride_of(std::max(what.send_span, what.receive_span))));
}

}  // namespace

Result<Workspace> Workspace::create(nic::Context& context, const Case& what, int rank, bool cold) {
  Workspace space;
  space.stride_ = stride_of(rank == 0 ? what.send_span : what.receive_span);
  space.copies_ = copies_of(what, cold);
  space.buffer_ = LACUNA_TRY(context.allocate(static_cast<std::size_t>(space.copies_ * space.stride_)));
  space.region_ = std::make_unique<nic::Region>(LACUNA_TRY(context.register_memory(space.buffer_.bytes(), {})));
  return space;
}

Result<void> Workbench::set_up(std::span<const std::unique_ptr<method::Endpoint>> endpoints, const Budget& budget,
                               nic::Bootstrap& bootstrap) {
  for (const std::string& name : budget.methods) LACUNA_TRY(method::find(name));
  const auto wanted = [](const auto& list, const auto& value) { return list.empty() || std::ranges::find(list, value) != list.end(); };
  for (const method::Method& method : method::methods()) {
    if (!wanted(budget.methods, method.name)) continue;
    for (const auto& endpoint : endpoints) {
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

void Workbench::fill_source(std::uint64_t seed) {
  const Image image = Image::source(case_, seed);
  for (std::int64_t copy = 0; copy < workspace_.copies(); ++copy) image.write_to(workspace_.base(copy));
  produced_.resize(static_cast<std::size_t>(case_.send.size()));
  copy::reference::pack(case_.send, workspace_.base(0), 0, case_.send.size(), produced_.data());
}

void Workbench::prepare_destination(std::uint64_t seeds) {
  const Image empty = Image::empty(case_);
  for (std::int64_t copy = 0; copy < workspace_.copies(); ++copy) empty.write_to(workspace_.base(copy));
  unreceived_.resize(static_cast<std::size_t>(case_.receive.size()));
  read_.resize(unreceived_.size());
  copy::reference::pack(case_.receive, workspace_.base(0), 0, case_.receive.size(), unreceived_.data());
  for (std::uint64_t seed = 0; seed < seeds; ++seed) expected_.push_back(Image::expected(case_, seed));
}

// The mails around one transfer:
//
//   rank 0                              rank 1
//   target (where rank 1 initiates) ──▶ prepare, start
//   time 0, start, run ◀── target ───── run: data in place, time 1
//   done ──▶ / ◀── done                 if the passive end is not told otherwise
Result<Timed> Workbench::visit(const Command& command) {
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  method::Operation& operation = *combination.operation;
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  Timed timed;
  LACUNA_TRY(mailbox_.send(command));
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    std::byte* base = workspace_.base((command.first_copy + sample) % workspace_.copies());
    // As the program that has something new to send would: its cache lines belong to this core, and nobody else has them. Cold memory has
    // no owner, and is to stay so.
    if (workspace_.copies() == 1) copy::unpack(case_.send, base, 0, case_.send.size(), produced_.data());
    const method::Target mine = LACUNA_TRY(combination.endpoint->prepare(operation, base, kTransferTimeout));
    if (combination.method->initiator == method::Role::receiver) LACUNA_TRY(mailbox_.send(std::span<const std::byte>(mine.encode())));
    const method::Target theirs = LACUNA_TRY(method::Target::decode(LACUNA_TRY(mailbox_.receive(combination.endpoint))));
    const std::int64_t busy = context_.busy_ns();
    starts.push_back(context_.now());
    LACUNA_TRY(operation.start(base, theirs));
    LACUNA_TRY(combination.endpoint->run(operation, kTransferTimeout));
    ends.push_back(context_.now());
    if (combination.uninformed(0)) LACUNA_TRY(mailbox_.receive<Done>(combination.endpoint));  // the data moves while this waits
    timed.cpu_send_us.push_back(static_cast<double>(context_.busy_ns() - busy) / 1e3);
    timed.copy_send_us.push_back(static_cast<double>(operation.counters().copy_ns) / 1e3);
    if (combination.uninformed(1)) LACUNA_TRY(mailbox_.send(Done{sample}));
  }
  const Visit theirs = LACUNA_TRY(mailbox_.receive<Visit>());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    timed.latency_us.push_back(static_cast<double>((combination.uninformed(1) ? ends[i] : theirs.end_ns[i]) - starts[i]) / 1e3);
    timed.cpu_recv_us.push_back(static_cast<double>(theirs.busy_ns[i]) / 1e3);
    timed.copy_recv_us.push_back(static_cast<double>(theirs.copy_ns[i]) / 1e3);
  }
  timed.send = operation.counters();
  timed.receive = theirs.counters;
  timed.wrong = theirs.wrong.data();
  return timed;
}

Result<Visit> Workbench::take_part(const Command& command) {
  if (command.combination < 0 || command.combination >= std::ssize(combinations_) || command.samples < 1 ||
      command.samples > Visit::kMost || command.verify_seed >= std::ssize(expected_)) {
    return base::fail(base::Code::malformed, "rank 0 asks for what is not there");
  }
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  method::Operation& operation = *combination.operation;
  Visit visit;
  std::byte* base = nullptr;
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    base = workspace_.base((command.first_copy + sample) % workspace_.copies());
    if (command.verify_seed >= 0) copy::unpack(case_.receive, base, 0, case_.receive.size(), unreceived_.data());
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
      LACUNA_TRY(mailbox_.receive<Done>(combination.endpoint));  // the data moves while this waits, where it needs this CPU
    }
    LACUNA_TRY(combination.endpoint->run(operation, kTransferTimeout));
    const auto i = static_cast<std::size_t>(sample);
    visit.end_ns[i] = context_.now();
    visit.busy_ns[i] = context_.busy_ns() - busy;
    visit.copy_ns[i] = operation.counters().copy_ns;
    if (combination.uninformed(0)) LACUNA_TRY(mailbox_.send(Done{sample}));
    // As the program that waited for the data would: its cache lines come to this core before the next transfer overwrites them.
    copy::pack(case_.receive, base, 0, case_.receive.size(), read_.data());
  }
  visit.counters = operation.counters();
  if (command.verify_seed >= 0) {
    const std::string wrong = expected_[static_cast<std::size_t>(command.verify_seed)].difference(base);
    std::memcpy(visit.wrong.data(), wrong.data(), std::min(wrong.size(), visit.wrong.size() - 1));
    if (!wrong.empty()) Image::empty(case_).write_to(base);  // the next method is not to blame for this one
  }
  return visit;
}

Result<void> Workbench::follow() {
  for (;;) {
    const Command command = LACUNA_TRY(mailbox_.receive<Command>());
    if (command.kind == Command::Kind::finish) return {};
    LACUNA_TRY(mailbox_.send(LACUNA_TRY(take_part(command))));
  }
}

}  // namespace lacuna::guide
