#include "lacuna/collective/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/base/rarely.hpp"

namespace lacuna::collective {
namespace {

using base::Code;

Result<void> check_memory(const void* base, const Layout& layout, std::string_view what, std::size_t index, int peer) {
  if (base == nullptr && layout.size() > 0)
    return base::fail(Code::invalid_argument,
                      fmt::format("{} {} (rank {}) has {} bytes at a null pointer", what, index, peer, layout.size()));
  return {};
}

Result<void> check_peer(int peer, int size, std::string_view what, std::size_t index) {
  if (peer >= 0 && peer < size) return {};
  return base::fail(Code::invalid_argument, fmt::format("{} {} names rank {}; there are ranks 0 to {}", what, index, peer, size - 1));
}

}  // namespace

Agreed::Agreed(Communicator& ranks, Request request, const Options& options)
    : ranks_(ranks),
      options_(options),
      kind_(request.kind),
      work_{.rank = ranks.rank(), .size = ranks.size(), .sends = {}, .receives = {}},
      refused_(std::move(request.refused)),
      program_(ranks) {
  if (!refused_) {
    if (const Result<void> checked = check(request); !checked) refused_ = checked.error();
  }
  send_sizes_.resize(static_cast<std::size_t>(work_.size));
  receive_sizes_.resize(static_cast<std::size_t>(work_.size));
  if (!refused_) {
    work_.sends = std::move(request.sends);
    work_.receives = std::move(request.receives);
    for (const Send& send : work_.sends) send_sizes_[static_cast<std::size_t>(send.to)].push_back(send.what.layout.size());
    for (const Receive& receive : work_.receives)
      receive_sizes_[static_cast<std::size_t>(receive.from)].push_back(receive.where.layout.size());
    if (const Result<void> checked = check_own(); !checked) refused_ = checked.error();
  }
  mine_ = terms(request.shape);
}

// --- what a rank brings ----------------------------------------------------------------------------------------------

Result<void> Agreed::check(const Request& request) const {
  if (options_.window < 1)
    return base::fail(Code::invalid_argument, fmt::format("a window of {} messages; at least one has to be under way", options_.window));
  if (static_cast<std::size_t>(options_.schedule) >= kSchedules)
    return base::fail(Code::invalid_argument, "no such schedule; there are: automatic, at_once, pairwise, forward");
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < request.sends.size(); ++i) {
    const auto& [to, what] = request.sends[i];
    LACUNA_TRY(check_peer(to, work_.size, "send", i));
    LACUNA_TRY(check_memory(what.base, what.layout, "send", i, to));
    if (!base::add(bytes, what.layout.size(), bytes)) return base::fail(Code::overflow, "the sends have more than 2^63 bytes in all");
  }
  bytes = 0;
  for (std::size_t i = 0; i < request.receives.size(); ++i) {
    const auto& [from, where] = request.receives[i];
    LACUNA_TRY(check_peer(from, work_.size, "receive", i));
    LACUNA_TRY(check_memory(where.base, where.layout, "receive", i, from));
    if (LACUNA_TRY(where.layout.overlaps()))
      return base::fail(
          Code::invalid_argument,
          fmt::format("receive {} (rank {}) has a layout that names some bytes twice; what they would hold is undefined", i, from));
    if (!base::add(bytes, where.layout.size(), bytes)) return base::fail(Code::overflow, "the receives have more than 2^63 bytes in all");
  }
  return {};
}

// What a rank sends itself nobody else sees.
Result<void> Agreed::check_own() const {
  const auto& out = send_sizes_[static_cast<std::size_t>(work_.rank)];
  const auto& in = receive_sizes_[static_cast<std::size_t>(work_.rank)];
  if (out.size() != in.size())
    return base::fail(Code::invalid_argument,
                      fmt::format("rank {} sends itself {} messages and receives {}", work_.rank, out.size(), in.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != in[i])
      return base::fail(Code::invalid_argument,
                        fmt::format("message {} of rank {} to itself has {} bytes, and its receive {}", i, work_.rank, out[i], in[i]));
  }
  return {};
}

Terms Agreed::terms(std::uint64_t shape) {
  Terms made;
  made.kind_low = made.kind_high = static_cast<std::int16_t>(kind_);
  made.wanted_low = made.wanted_high = static_cast<std::int16_t>(options_.schedule);
  made.shape_low = made.shape_high = static_cast<std::int64_t>(shape);
  const nic::PathInfo* mapped = ranks_.context().limits().path(nic::Path::mapped);
  made.shared_memory = mapped != nullptr && mapped->available ? 1 : 0;
  made.by_hub = ranks_.by_hub() ? 1 : 0;
  made.sharing = ranks_.context().limits().sharing;
  if (const auto& prices = ranks_.exchange_prices()) {
    made.prices = *prices;
    made.all_priced = 1;
  }
  if (refused_) {
    made.refused = static_cast<std::int32_t>(refused_->code) + 1;
    made.refuser = work_.rank;
    return made;
  }
  made.edges = edges(work_.rank, send_sizes_, receive_sizes_);
  const auto count = [&](const Sizes& all) {
    std::int64_t bytes = 0, messages = 0;
    for (std::size_t peer = 0; peer < all.size(); ++peer) {
      for (const std::int64_t size : all[peer]) {
        made.largest = std::max(made.largest, size);
        if (std::cmp_equal(peer, work_.rank)) continue;
        bytes += size;
        messages += size > 0 ? 1 : 0;
      }
    }
    made.most_bytes = std::max(made.most_bytes, bytes);
    made.most_messages = std::max(made.most_messages, messages);
  };
  count(send_sizes_);
  count(receive_sizes_);
  const auto runs = [&](int peer, const Layout& layout) {
    if (peer != work_.rank && !base::add(made.most_runs, layout.run_count(), made.most_runs)) made.most_runs = INT64_MAX;
  };
  for (const Send& send : work_.sends) runs(send.to, send.what.layout);
  for (const Receive& receive : work_.receives) runs(receive.from, receive.where.layout);
  return made;
}

// --- what all ranks come to ------------------------------------------------------------------------------------------

// The same on every rank, or an error on every rank.
Result<Choice> Agreed::agreed(const Terms& all) const {
  if (refused_) return std::unexpected(*refused_);
  if (all.refuser != INT32_MAX) {
    LACUNA_RARELY("exchange: another rank refuses");
    return base::fail(static_cast<Code>(std::clamp(all.refused - 1, 0, static_cast<int>(Code::truncated))),
                      fmt::format("rank {} cannot take part with its arguments; the error there says why", all.refuser));
  }
  if (all.kind_low != all.kind_high)
    return base::fail(Code::invalid_argument,
                      fmt::format("some ranks call {}, others {}", kind_name(static_cast<ExchangeKind>(all.kind_low)),
                                  kind_name(static_cast<ExchangeKind>(all.kind_high))));
  if (all.wanted_low != all.wanted_high)
    return base::fail(Code::invalid_argument,
                      fmt::format("some ranks ask for schedule {}, others for {}", schedule_name(static_cast<Schedule>(all.wanted_low)),
                                  schedule_name(static_cast<Schedule>(all.wanted_high))));
  if (all.shape_low != all.shape_high)
    return base::fail(Code::invalid_argument,
                      "the ranks describe different matrices: rows, columns, element bytes and blocks must be the same");
  return choose({.ranks = work_.size,
                 .everyone = kind_ != ExchangeKind::neighbor_exchange,
                 .largest = all.largest,
                 .most_bytes = all.most_bytes,
                 .most_messages = all.most_messages,
                 .most_runs = all.most_runs,
                 .shared_memory = all.shared_memory != 0,
                 .by_hub = all.by_hub != 0,
                 .sharing = std::max(all.sharing, 1),
                 .prices = all.prices.possible() ? std::optional(all.prices) : std::nullopt,
                 .all_priced = all.all_priced != 0},
                options_.schedule);
}

Result<void> Agreed::decide(const Terms& all) {
  Result<Choice> choice = agreed(all);
  if (!choice) {
    program_.known_to_all();
    return std::unexpected(std::move(choice).error());
  }
  if (all.edges != 0) {
    LACUNA_RARELY("exchange: what ranks send and receive does not fit");
    misfit_.begin(program_, work_.rank, send_sizes_, receive_sizes_, [this](const Terms& found) -> Result<void> {
      program_.known_to_all();
      if (!misfit_.here().empty()) return base::fail(Code::invalid_argument, misfit_.here());
      return base::fail(Code::invalid_argument,
                        fmt::format("what rank {} sends rank {} does not fit what is received there; nothing was moved", found.misfit_from,
                                    found.misfit_to));
    });
    return {};
  }
  if (choice->schedule == Schedule::forward) {
    LACUNA_TRY(forwarding_.make(work_, all.largest, ranks_.context()));
  } else {
    direct_ = direct(work_, choice->schedule == Schedule::pairwise ? options_.window : direct_.window, ranks_.context());
  }
  choice_ = std::move(*choice);
  begin(*choice_);
  return {};
}

void Agreed::begin(const Choice& choice) {
  if (choice.schedule == Schedule::forward) {
    for (const Round& round : forwarding_.rounds()) program_.add(round);
  } else {
    program_.add(direct_);
  }
}

// --- at work ---------------------------------------------------------------------------------------------------------

Result<void> Agreed::start() {
  if (failed_) return std::unexpected(*failed_);
  if (under_way_) return base::fail(Code::invalid_argument, "this exchange is under way; it can be started again once it is done");
  under_way_ = true;
  if (choice_) {
    begin(*choice_);
  } else {
    combining_.begin(program_, work_.rank, work_.size, mine_, [this](const Terms& all) { return decide(all); });
  }
  LACUNA_TRY(go_on(0));
  return {};
}

Result<bool> Agreed::go_on(std::int64_t timeout_ns) {
  if (failed_) return std::unexpected(*failed_);
  if (!under_way_) return true;
  const Result<bool> done = program_.go_on(timeout_ns);
  if (!done) failed_ = done.error();
  under_way_ = done && !*done;
  return done;
}

Result<void> Agreed::wait() {
  if (LACUNA_TRY(wait_for(options_.timeout_ns))) return {};
  failed_ = base::Error{Code::timeout, fmt::format("{} was given up after {:.3g} s; some rank did not take part", kind_name(kind_),
                                                   static_cast<double>(options_.timeout_ns) * 1e-9)};
  program_.give_up(*failed_);
  under_way_ = false;
  return std::unexpected(*failed_);
}

std::string Agreed::explain() const {
  std::string text = fmt::format("{}, rank {} of {}: {} sends, {} receives, of {} bytes at most in either direction\n", kind_name(kind_),
                                 work_.rank, work_.size, work_.sends.size(), work_.receives.size(), mine_.most_bytes);
  if (failed_) return text + "  failed: " + failed_->text() + "\n";
  if (!choice_) return text + "  the ranks have not agreed yet\n";
  text += fmt::format("  {}: {}\n", schedule_name(choice_->schedule), choice_->why);
  for (std::size_t i = 1; i < kSchedules; ++i) {
    const double us = choice_->expected_us[i];
    text += us > 0 ? fmt::format("    {:<10}expected {:.4g} us\n", schedule_name(static_cast<Schedule>(i)), us)
                   : fmt::format("    {:<10}not possible here\n", schedule_name(static_cast<Schedule>(i)));
  }
  return text + fmt::format("  by {}\n", choice_->prices);
}

// --- everyone to everyone, and neighbours ----------------------------------------------------------------------------

std::unique_ptr<Exchange> alltoallw_init(Communicator& ranks, std::span<const Source> sends, std::span<const Target> receives,
                                         const Options& options) {
  Request request{.kind = ExchangeKind::alltoallw};
  const auto size = static_cast<std::size_t>(ranks.size());
  if (sends.size() != size || receives.size() != size) {
    request.refused = base::Error{Code::invalid_argument,
                                  fmt::format("alltoallw with {} sends and {} receives; it takes one of each for each of {} ranks",
                                              sends.size(), receives.size(), size)};
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      request.sends.push_back({static_cast<int>(i), sends[i]});
      request.receives.push_back({static_cast<int>(i), receives[i]});
    }
  }
  return std::make_unique<Agreed>(ranks, std::move(request), options);
}

std::unique_ptr<Exchange> neighbor_exchange_init(Communicator& ranks, std::span<const Send> sends, std::span<const Receive> receives,
                                                 const Options& options) {
  return std::make_unique<Agreed>(
      ranks,
      Request{
          .kind = ExchangeKind::neighbor_exchange, .sends = {sends.begin(), sends.end()}, .receives = {receives.begin(), receives.end()}},
      options);
}

namespace {
Result<void> run(const std::unique_ptr<Exchange>& exchange) {
  LACUNA_TRY(exchange->start());
  return exchange->wait();
}
}  // namespace

Result<void> alltoallw(Communicator& ranks, std::span<const Source> sends, std::span<const Target> receives, const Options& options) {
  return run(alltoallw_init(ranks, sends, receives, options));
}
Result<void> neighbor_exchange(Communicator& ranks, std::span<const Send> sends, std::span<const Receive> receives,
                               const Options& options) {
  return run(neighbor_exchange_init(ranks, sends, receives, options));
}
Result<void> transpose(Communicator& ranks, const Matrix& matrix, const void* before, void* after, const Options& options) {
  return run(transpose_init(ranks, matrix, before, after, options));
}

}  // namespace lacuna::collective
