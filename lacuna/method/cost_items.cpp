// Cost items with their times, and how they add up.
#include <algorithm>
#include <bit>

#include "lacuna/method/method.hpp"

namespace lacuna::method {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;
constexpr double kListUnit = 1024;  // entries that key_again is told for

constexpr std::array<std::string_view, kStages> kStageNames{"post", "fetch", "translate", "copy", "wire", "unpack", "register", "notify"};

constexpr std::array<std::string_view, kPrices> kPriceNames{
    "start",         "post",          "build",           "build_entry", "receive",    "poll",       "message",    "request",
    "entry",         "scatter",       "key_entry",       "key_scan",    "key_again",  "page",       "write_byte", "write_far_byte",
    "read_byte",     "read_far_byte", "piece",           "read",        "write_none", "write_imm",  "write_flag", "read_none",
    "read_imm",      "read_flag",     "copy_call",       "pack_run",    "unpack_run", "listed_run", "uneven_run", "pack_byte",
    "pack_far_byte", "unpack_byte",   "unpack_far_byte", "cold_line",   "bind",       "bind_entry", "held_line",  "fresh_line",
    "key_lookup",    "near_bytes",    "far_bytes",       "held_bytes"};

// What finding entries 1 .. n of a key takes on average: `entry` for each, or `scan` for all that are passed, whichever
// is longer.
double mean_of_longer(double entry, double scan, double n) {
  if (scan * n <= entry) return entry;
  const double even = entry / scan;  // up to here the search is hidden
  return (entry * even + scan * (n * n - even * even) / 2) / n;
}

// The binary logarithm, linear between powers of two: a choice has no time for the true one. 0 below 1.
double log2_of(double value) {
  if (value <= 1) return 0;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  const auto mantissa = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);
  return static_cast<double>(exponent) + mantissa - 1;
}

}  // namespace

std::string_view stage_name(Stage stage) { return kStageNames.at(static_cast<std::size_t>(stage)); }
std::string_view price_name(Price price) { return kPriceNames.at(static_cast<std::size_t>(price)); }

void CostItems::add_bytes(When when, Stage stage, Who who, Price near, Price far, double bytes, double footprint) {
  // The share that comes from beyond grows with the logarithm of what is touched.
  const double near_at = log2_of(price(Price::near_bytes));
  const double range = std::max(0.01, log2_of(price(Price::far_bytes)) - near_at);
  const double share = std::clamp((log2_of(footprint) - near_at) / range, 0.0, 1.0);
  add_ns(when, stage, who, bytes * (price(near) * (1 - share) + price(far) * share));
}

// Lines that the other CPU has in its own cache, unless it has touched more since than there is room for.
void CostItems::add_lines(When when, Stage stage, Who who, Price of, double lines, double touched) {
  const double left = std::clamp(log2_of(touched) - log2_of(price(Price::held_bytes)), 0.0, 1.0);
  add(when, stage, who, of, lines * (1 - left));
}

void CostItems::copy(When when, double calls, Role role) {
  const bool packs = role == Role::sender;
  const layout::Outline& side = packs ? pair_.src : pair_.dst;
  if (side.contiguous()) return;
  const Stage stage = packs ? Stage::copy : Stage::unpack;
  const Who who = packs ? Who::sender : Who::receiver;
  const auto runs = static_cast<double>(side.runs);
  const auto bytes = static_cast<double>(side.bytes);
  const double lines = side.lines;
  if (packs) packed_ = true;
  double ns = calls * price(Price::copy_call) + runs * price(packs ? Price::pack_run : Price::unpack_run);
  ns += runs * (side.listed * price(Price::listed_run) + std::min(1.0, side.uneven) * price(Price::uneven_run));
  if (cold_) ns += lines * price(Price::cold_line);
  add_ns(when, stage, who, ns);
  add_bytes(when, stage, who, packs ? Price::pack_byte : Price::unpack_byte, packs ? Price::pack_far_byte : Price::unpack_far_byte, bytes,
            kLine * lines + bytes / calls);
  if (when == When::between) requests_ = std::max(requests_, calls);
}

void CostItems::pack(When when, double calls) { copy(when, calls, Role::sender); }
void CostItems::unpack(When when, double calls) { copy(when, calls, Role::receiver); }

// The entries of keys at one end. A unit that the path moves begins with an entry that is looked for while the units
// before are on their way; the further ones of the same unit wait for one another.
void CostItems::translate(Who who, const layout::Outline& side, double entries, const Haul& h) {
  if (entries <= 0) return;
  const double keys = h.keys;
  const double n = entries / keys;
  if (path_.unit_bytes == 0 || path_.mover != nic::Mover::device) {
    if (path_.mover != nic::Mover::device) add(When::between, Stage::translate, who, Price::key_lookup, keys);
    add(When::between, Stage::translate, who, Price::key_entry, entries);
    return;
  }
  const auto unit = static_cast<double>(path_.unit_bytes);
  const double units = std::max(1.0, static_cast<double>(side.bytes) / keys / unit);
  const std::int64_t length = side.bytes / std::max<std::int64_t>(1, side.runs);
  const bool aligned = side.uneven < 1e-6 && length > 0 && (length % path_.unit_bytes == 0 || path_.unit_bytes % length == 0);
  const double parts = aligned ? std::max(n, units) : n + units - 1;
  const double first = std::min(parts, units);
  const double list = n * h.longer;
  const double scan = price(Price::key_scan);
  const double again = price(Price::key_again) * list / kListUnit;
  double ns = first * mean_of_longer(price(Price::key_entry) * std::min(1.0, n / parts), scan, list);
  ns += (parts - first) * (price(Price::key_entry) + (scan + again) * list / 2);
  add_ns(When::between, Stage::translate, who, keys * ns);
}

// What a CPU moves to or from the other one's cache: a program has read what it got before that is overwritten, and has
// written what it sends. Cold data is in no cache, but staging is: the transfer before went through it.
void CostItems::between_caches(const Haul& h) {
  const auto bytes = static_cast<double>(pair_.bytes());
  if (bytes <= 0) return;
  const auto line = static_cast<double>(kLine);
  const double staged = bytes / line + 1;
  const auto touched_in_place = [&](const layout::Outline& side) { return std::max(bytes, line * side.lines); };
  // What came out of staging, and what the program made of that.
  const double after_staging = touched_in_place(pair_.dst) + bytes;
  if (!h.reading) {
    const bool unpacks = h.staging > 0 && !pair_.dst.contiguous();
    if (unpacks) add_lines(When::between, Stage::wire, initiator_, Price::held_line, staged, h.staging + after_staging * h.staging / bytes);
    if (!unpacks && !cold_)
      add_lines(When::between, Stage::wire, initiator_, Price::held_line, pair_.dst.lines, touched_in_place(pair_.dst));
    return;
  }
  if (packed_) {
    add_lines(When::before, Stage::copy, Who::sender, Price::held_line, staged, bytes + after_staging);
    add_lines(When::between, Stage::wire, initiator_, Price::fresh_line, staged, bytes);
  } else if (!cold_) {
    add_lines(When::between, Stage::wire, initiator_, Price::fresh_line, pair_.src.lines, touched_in_place(pair_.src));
  }
}

void CostItems::haul(const Haul& h) {
  const bool device = path_.mover == nic::Mover::device;
  const auto bytes = static_cast<double>(pair_.bytes());
  const Who target = h.reading ? Who::sender : Who::receiver;
  initiator_ = h.reading ? Who::receiver : Who::sender;
  requests_ = std::max(requests_, h.requests);
  units_ = path_.unit_bytes == 0 ? 1.0 : std::max(1.0, bytes / static_cast<double>(path_.unit_bytes));

  // The CPUs' part.
  add(When::between, Stage::post, initiator_, Price::post, h.doorbells);
  add(When::between, Stage::post, initiator_, Price::build, h.requests);
  add(When::between, Stage::post, initiator_, Price::build_entry, h.reading ? h.scatters : h.gathers);
  add(When::aside, Stage::post, initiator_, Price::poll, 1);
  if (h.messages) {
    add(When::aside, Stage::post, target, Price::receive, h.requests);
    add(When::aside, Stage::post, target, Price::build_entry, h.scatters);
    add(When::between, Stage::post, target, Price::poll, h.requests);
    add(When::after, Stage::notify, device ? Who::wire : target, Price::message, 1);
  }
  if (device && h.credits > 0) {
    add(When::between, Stage::post, target, Price::post, h.credits);
    add(When::between, Stage::post, target, Price::build, h.credits);
    add(When::aside, Stage::post, initiator_, Price::receive, h.credits);
    add(When::between, Stage::post, initiator_, Price::poll, h.credits);
  }
  if (h.reading) add(When::before, Stage::post, device ? Who::wire : target, Price::read, 1);
  add(When::before, Stage::wire, Who::wire, Price::start, 1);

  // The engines', or whoever stands in for them.
  add(When::between, Stage::fetch, Who::fetch, Price::request, h.requests);
  add(When::between, Stage::fetch, Who::fetch, Price::entry, h.gathers);
  add(When::between, Stage::fetch, Who::place, Price::scatter, h.scatters);
  translate(Who::fetch, pair_.src, h.gather_keys, h);
  translate(Who::place, pair_.dst, h.scatter_keys, h);
  add(When::between, Stage::translate, Who::fetch, Price::page, h.gathers + h.gather_keys > 1 ? pair_.src.pages : bytes / kPage);
  add(When::between, Stage::translate, Who::place, Price::page, h.scatters + h.scatter_keys > 1 ? pair_.dst.pages : bytes / kPage);

  // The bytes.
  const double footprint = bytes + static_cast<double>(kLine) * (pair_.src.lines + pair_.dst.lines) / 2;
  const auto far = [&](Who who, bool reads) {
    add_bytes(When::between, Stage::wire, who, reads ? Price::read_byte : Price::write_byte,
              reads ? Price::read_far_byte : Price::write_far_byte, bytes, footprint);
  };
  switch (path_.mover) {
    case nic::Mover::device: add(When::between, Stage::wire, Who::wire, Price::write_byte, bytes); break;
    case nic::Mover::initiator:
      add(When::between, Stage::wire, initiator_, Price::piece, h.pieces);
      far(initiator_, h.reading);
      between_caches(h);
      break;
    case nic::Mover::both:
      add(When::between, Stage::wire, Who::sender, Price::piece, h.gather_keys > 0 ? static_cast<double>(pair_.src.runs) : h.gathers);
      add(When::between, Stage::wire, Who::receiver, Price::piece, h.scatter_keys > 0 ? static_cast<double>(pair_.dst.runs) : h.scatters);
      far(Who::sender, false);
      far(Who::receiver, true);
      break;
  }
  if (cold_ && !device) add(When::between, Stage::wire, initiator_, Price::cold_line, pair_.src.lines + pair_.dst.lines);
}

void CostItems::notify(Role initiator, Notify notify) {
  if (notified_) {  // another one instead
    const Item& last = item_[--items_];
    account(last.when, last.who, -last.ns);
  }
  notified_ = true;
  constexpr std::array kWrite{Price::write_none, Price::write_imm, Price::write_flag};
  constexpr std::array kRead{Price::read_none, Price::read_imm, Price::read_flag};
  const bool reads = initiator == Role::receiver;
  const Price which = (reads ? kRead : kWrite).at(static_cast<std::size_t>(notify));
  const Who who = reads ? Who::receiver : Who::sender;
  add(When::after, Stage::notify, path_.mover == nic::Mover::device ? Who::wire : who, which, 1);
}

void CostItems::bind(double keys, double entries) {
  if (uses_ <= 0 || entries <= 0) return;
  add(When::before, Stage::registration, Who::sender, Price::bind, keys / uses_);
  add(When::before, Stage::registration, Who::sender, Price::bind_entry, entries / uses_);
  // The other end does so at the same time.
  add(When::aside, Stage::registration, Who::receiver, Price::bind, keys / uses_);
  add(When::aside, Stage::registration, Who::receiver, Price::bind_entry, entries / uses_);
}

double CostItems::latency_ns() const {
  const std::array<double, kWho> share = shares();
  double ns = alone_;
  for (std::size_t who = 0; who < kWho; ++who) ns += between_[who] * share[who];
  return ns;
}

std::array<double, kStages> CostItems::stages_ns() const {
  const std::array<double, kWho> share = shares();
  std::array<double, kStages> stages{};
  for (std::size_t i = 0; i < items_; ++i) {
    const Item& item = item_[i];
    if (item.when == When::aside) continue;
    stages[static_cast<std::size_t>(item.stage)] += item.ns * (item.when == When::between ? share[static_cast<std::size_t>(item.who)] : 1);
  }
  return stages;
}

double CostItems::cpu_ns(Role role) const { return whole_[static_cast<std::size_t>(role == Role::sender ? Who::sender : Who::receiver)]; }

double CostItems::busiest_ns() const { return std::ranges::max(whole_); }

}  // namespace lacuna::method
