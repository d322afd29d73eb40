#include "lacuna/guide/workbench.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::guide {
namespace {

constexpr std::int64_t kTransferTimeout = 20'000'000'000;  // ns
constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// One combination's offer to the other rank, as it travels.
struct Offer {
  std::int32_t ok = 0;
  std::int32_t reason_bytes = 0;
  method::Target target;
  std::int64_t target_step = 0;
};

struct Ready {
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

Result<void> Workbench::set_up(std::span<const std::unique_ptr<method::Endpoint>> endpoints, nic::Bootstrap& bootstrap) {
  const method::Transfer transfer{case_.send, case_.receive, method::Notify::none};
  for (const method::Method& method : method::methods()) {
    for (const auto& endpoint : endpoints) {
      for (const method::Notify notify : method.notifies) {
        Combination combination{.method = &method, .endpoint = endpoint.get(), .notify = notify};
        method::Transfer one = transfer;
        one.notify = notify;
        auto made =
            method::make(method, rank_ == 0 ? method::Role::sender : method::Role::receiver, *endpoint, one, {&workspace_.region()});
        if (made) {
          combination.operation = std::move(*made);
        } else {
          combination.refusal = made.error().text();
        }
        combinations_.push_back(std::move(combination));
      }
    }
  }
  return agree(bootstrap);
}

Result<void> Workbench::agree(nic::Bootstrap& bootstrap) {
  nic::Hello mine;
  const auto append = [&](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    mine.bytes.insert(mine.bytes.end(), from, from + bytes);
  };
  for (const Combination& combination : combinations_) {
    Offer offer;
    offer.ok = combination.operation ? 1 : 0;
    offer.reason_bytes = static_cast<std::int32_t>(combination.refusal.size());
    if (combination.operation) {
      offer.target = combination.operation->target(workspace_.base(0));
      if (workspace_.copies() > 1)
        offer.target_step = static_cast<std::int64_t>(combination.operation->target(workspace_.base(1)).addr - offer.target.addr);
    }
    append(&offer, sizeof offer);
    append(combination.refusal.data(), combination.refusal.size());
  }
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(mine, kTransferTimeout));
  std::size_t at = 0;
  for (Combination& combination : combinations_) {
    Offer offer;
    const std::size_t left = theirs.bytes.size() - at;
    if (left < sizeof offer) return base::fail(base::Code::malformed, "the other rank offered fewer combinations");
    std::memcpy(&offer, theirs.bytes.data() + at, sizeof offer);
    at += sizeof offer;
    if (offer.reason_bytes < 0 || static_cast<std::size_t>(offer.reason_bytes) > left - sizeof offer)
      return base::fail(base::Code::malformed, "the other rank's offers are cut short");
    if (offer.ok == 0) {
      combination.operation.reset();
      if (combination.refusal.empty())
        combination.refusal.assign(reinterpret_cast<const char*>(theirs.bytes.data() + at), static_cast<std::size_t>(offer.reason_bytes));
    }
    at += static_cast<std::size_t>(offer.reason_bytes);
    combination.target = offer.target;
    combination.target_step = offer.target_step;
  }
  return {};
}

void Workbench::fill_source(std::uint64_t seed) {
  const std::vector<std::byte> image = source_image(seed, case_.send_span);
  for (std::int64_t copy = 0; copy < workspace_.copies(); ++copy) std::memcpy(workspace_.base(copy), image.data(), image.size());
}

void Workbench::prepare_destination(std::uint64_t seeds) {
  const std::vector<std::byte> empty = empty_image(case_.receive_span);
  for (std::int64_t copy = 0; copy < workspace_.copies(); ++copy) std::memcpy(workspace_.image(copy), empty.data(), empty.size());
  unreceived_.resize(static_cast<std::size_t>(case_.receive.size()));
  read_.resize(unreceived_.size());
  copy::reference::pack(case_.receive, empty.data() + kGuard, 0, case_.receive.size(), unreceived_.data());
  for (std::uint64_t seed = 0; seed < seeds; ++seed) expected_.push_back(expected_image(case_, seed));
}

Result<Timed> Workbench::visit(const Command& command) {
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  Timed timed;
  LACUNA_TRY(mailbox_.send(command));
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    const std::int64_t copy = (command.first_copy + sample) % workspace_.copies();
    LACUNA_TRY(mailbox_.receive<Ready>());
    const std::int64_t busy = context_.busy_ns();
    starts.push_back(context_.now());
    LACUNA_TRY(combination.operation->start(workspace_.base(copy), combination.target_of(copy)));
    LACUNA_TRY(combination.endpoint->run(*combination.operation, kTransferTimeout));
    ends.push_back(context_.now());
    timed.cpu_send_us.push_back(static_cast<double>(context_.busy_ns() - busy) / 1e3);
    if (combination.method->one_sided() && combination.notify == method::Notify::none) LACUNA_TRY(mailbox_.send(Ready{sample}));
  }
  const Visit theirs = LACUNA_TRY(mailbox_.receive<Visit>());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const bool told = !combination.method->one_sided() || combination.notify != method::Notify::none;
    timed.latency_us.push_back(static_cast<double>((told ? theirs.end_ns[i] : ends[i]) - starts[i]) / 1e3);
    timed.cpu_recv_us.push_back(static_cast<double>(theirs.busy_ns[i]) / 1e3);
  }
  timed.wrong = theirs.wrong.data();
  return timed;
}

Result<Visit> Workbench::take_part(const Command& command) {
  if (command.combination < 0 || command.combination >= std::ssize(combinations_) || command.samples < 1 ||
      command.samples > Visit::kMost || command.verify_seed >= std::ssize(expected_)) {
    return base::fail(base::Code::malformed, "rank 0 asks for what is not there");
  }
  Combination& combination = combinations_[static_cast<std::size_t>(command.combination)];
  Visit visit;
  std::int64_t copy = 0;
  for (std::int32_t sample = 0; sample < command.samples; ++sample) {
    copy = (command.first_copy + sample) % workspace_.copies();
    if (command.verify_seed >= 0) copy::unpack(case_.receive, workspace_.base(copy), 0, case_.receive.size(), unreceived_.data());
    const std::int64_t before = context_.busy_ns();
    LACUNA_TRY(combination.operation->start(workspace_.base(copy)));
    const std::int64_t started = context_.busy_ns() - before;
    LACUNA_TRY(mailbox_.send(Ready{sample}));
    const std::int64_t busy = context_.busy_ns() - started;  // starting is the transfer's, the mail is not
    if (combination.method->one_sided() && combination.notify == method::Notify::none) {
      LACUNA_TRY(mailbox_.receive<Ready>(combination.endpoint));  // the data moves while this waits, where it needs this CPU
    } else {
      LACUNA_TRY(combination.endpoint->run(*combination.operation, kTransferTimeout));
    }
    visit.end_ns[static_cast<std::size_t>(sample)] = context_.now();
    visit.busy_ns[static_cast<std::size_t>(sample)] = context_.busy_ns() - busy;
    // As the program that waited for the data would: its cache lines come to this core before the next transfer overwrites them.
    copy::pack(case_.receive, workspace_.base(copy), 0, case_.receive.size(), read_.data());
  }
  if (command.verify_seed >= 0) {
    const std::string wrong = difference(workspace_.image(copy), expected_[static_cast<std::size_t>(command.verify_seed)]);
    std::memcpy(visit.wrong.data(), wrong.data(), std::min(wrong.size(), visit.wrong.size() - 1));
    if (!wrong.empty()) {  // the next method is not to blame for this one
      const std::vector<std::byte> empty = empty_image(case_.receive_span);
      std::memcpy(workspace_.image(copy), empty.data(), empty.size());
    }
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
