#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "tools/bench/copy/arena.hpp"
#include "tools/bench/copy/bench.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::bench {
namespace {

using nlohmann::json;
using Bytes = std::vector<std::byte>;

bool has_two_forms(const Side& side) {
  if (!side.drawn.empty()) return has_blocks(side.drawn);
  return side.records ? true : has_blocks(side.nests);
}

void pack_by_hand(const Side& side, Form form, const std::byte* base, std::byte* out) {
  if (!side.drawn.empty()) return hand_pack(side.drawn, form, base, out);
  if (!side.records) return hand_pack(side.nests, form, base, out);
  const Records& r = *side.records;
  hand_pack_records(r.record, form, base, r.count, r.list.empty() ? nullptr : r.list.data(), out);
}
void unpack_by_hand(const Side& side, Form form, std::byte* base, const std::byte* in) {
  if (!side.drawn.empty()) return hand_unpack(side.drawn, form, base, in);
  if (!side.records) return hand_unpack(side.nests, form, base, in);
  const Records& r = *side.records;
  hand_unpack_records(r.record, form, base, r.count, r.list.empty() ? nullptr : r.list.data(), in);
}

// The memory of a case, and what must be in it afterwards.
class Bench {
 public:
  Bench(Case what, const Request& request)
      : case_(std::move(what)),
        request_(request),
        bytes_(case_.send.layout.size()),
        drawn_(!case_.send.drawn.empty()),
        from_(case_.send.span, case_.send.base),
        to_(case_.receive.span, case_.receive.base),
        packed_(bytes_, 0),
        other_(bytes_, 0),
        from_lines_(lines_of(case_.send.layout, case_.send.base, drawn_ ? Sequence::sorted : Sequence::stream)),
        from_sorted_(drawn_ ? Lines() : lines_of(case_.send.layout, case_.send.base, Sequence::sorted)),
        to_lines_(lines_of(case_.receive.layout, case_.receive.base, drawn_ ? Sequence::sorted : Sequence::stream)),
        to_sorted_(drawn_ ? Lines() : lines_of(case_.receive.layout, case_.receive.base, Sequence::sorted)) {
    const Lines dense = lines_of(layout::Layout::bytes(bytes_).value(), 0, Sequence::stream);
    from_.fill(from_lines_, 1);
    to_.fill(to_lines_, 2);
    packed_.fill(dense, 3);
    other_.fill(dense, 4);
    expected_packed_.resize(static_cast<std::size_t>(bytes_));
    copy::reference::pack(case_.send.layout, from_.base(), 0, bytes_, expected_packed_.data());
    before_ = to_.snapshot();
    if (request.operation != "pack") {
      copy::reference::unpack(case_.receive.layout, to_.base(), 0, bytes_, expected_packed_.data());
      after_ = to_.snapshot();
    }
    if (request.operation == "unpack") std::memcpy(packed_.memory(), expected_packed_.data(), expected_packed_.size());
  }

  json run(const Mpi* mpi) {
    if (drawn_) {
      add_drawn();
    } else {
      mpi != nullptr ? add_mpi(*mpi) : add_rest();
    }
    json row = race_verified();
    row.update({{"group", case_.group},
                {"case", case_.name},
                {"kind", case_.kind},
                {"operation", request_.operation},
                {"cache", request_.cold ? "cold" : "warm"},
                {"bytes", bytes_},
                {"blocks", (is_receive() ? case_.receive : case_.send).layout.run_count()},
                {"lines", (is_receive() ? to_lines_ : from_lines_).lines.size()}});
    return row;
  }

  // Contenders of the caller's, all of which do the request's operation.
  json run(std::vector<Contender> contenders) {
    contenders_ = std::move(contenders);
    verified_ = contenders_.size();
    return race_verified();
  }

  [[nodiscard]] const Case& what() const { return case_; }
  [[nodiscard]] std::byte* from() const { return from_.base(); }
  [[nodiscard]] std::byte* to() const { return to_.base(); }
  [[nodiscard]] std::byte* packed() const { return packed_.memory(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  // The contenders that do the operation itself, the first `verified_`, are verified before and after.
  json race_verified() {
    for (std::size_t i = 0; i < verified_; ++i) verify(contenders_[i]);
    Pace pace{.cold = request_.cold, .evict = [this] { evict_all(); }, .milliseconds = request_.milliseconds};
    if (drawn_) {
      pace.fewest = 9;
      pace.patience = 5;
    }
    json row = race(contenders_, pace);
    for (std::size_t i = 0; i < verified_; ++i) verify(contenders_[i]);
    return row;
  }
  // The side that the row is about: the scattered one, for layout to layout the source.
  [[nodiscard]] bool is_receive() const { return request_.operation == "unpack" || (drawn_ && case_.send.layout.contiguous_bytes()); }

  void add(std::string name, std::function<void()> run) { contenders_.push_back({std::move(name), std::move(run)}); }

  void add_ours() {
    const layout::Layout& send = case_.send.layout;
    const layout::Layout& receive = case_.receive.layout;
    if (request_.operation == "pack") {
      add("lacuna", [&] { copy::pack(send, from_.base(), 0, bytes_, packed_.memory()); });
    } else if (request_.operation == "unpack") {
      add("lacuna", [&] { copy::unpack(receive, to_.base(), 0, bytes_, packed_.memory()); });
    } else {
      add("lacuna", [&] { (void)copy::transpack(send, from_.base(), receive, to_.base()); });
    }
  }

  void add_mpi(const Mpi& mpi) {
    add_ours();
    send_type_ = made(mpi.type(case_.send.type));
    receive_type_ = made(mpi.type(case_.receive.type));
    const auto* calls = &mpi.calls();
    const int bytes = static_cast<int>(bytes_);
    if (request_.operation == "pack") {
      add("mpi", [=, this] { calls->pack(from_.base(), send_type_.get(), packed_.memory(), bytes); });
    } else if (request_.operation == "unpack") {
      add("mpi", [=, this] { calls->unpack(packed_.memory(), bytes, to_.base(), receive_type_.get()); });
    } else {
      add("mpi", [=, this] {
        calls->pack(from_.base(), send_type_.get(), packed_.memory(), bytes);
        calls->unpack(packed_.memory(), bytes, to_.base(), receive_type_.get());
      });
    }
    verified_ = contenders_.size();
  }
  static Mpi::Type made(base::Result<Mpi::Type> type) {
    if (!type) throw std::runtime_error(type.error().text());
    return std::move(*type);
  }

  void add_rest() {
    add_ours();
    const bool packs = request_.operation != "unpack";
    const bool unpacks = request_.operation != "pack";
    for (const Form form : {Form::elements, Form::memcpy}) {
      const bool differs = (packs && has_two_forms(case_.send)) || (unpacks && has_two_forms(case_.receive));
      if (form == Form::memcpy && !differs) continue;
      add(form == Form::elements ? "hand_elements" : "hand_memcpy", [=, this] {
        if (packs) pack_by_hand(case_.send, form, from_.base(), packed_.memory());
        if (unpacks) unpack_by_hand(case_.receive, form, to_.base(), packed_.memory());
      });
    }
    if (request_.operation == "transpack") {
      add("pack_unpack", [this] {
        copy::pack(case_.send.layout, from_.base(), 0, bytes_, packed_.memory());
        copy::unpack(case_.receive.layout, to_.base(), 0, bytes_, packed_.memory());
      });
    }
    if (bytes_ >= (1 << 20) && request_.operation != "transpack") {
      team_ = std::make_unique<copy::Team>(2);
      add("lacuna_2_threads", [this] {
        if (request_.operation == "pack") {
          team_->pack(case_.send.layout, from_.base(), 0, bytes_, packed_.memory());
        } else {
          team_->unpack(case_.receive.layout, to_.base(), 0, bytes_, packed_.memory());
        }
      });
    }
    verified_ = contenders_.size();
    add("memcpy", [this] { std::memcpy(packed_.memory(), other_.memory(), static_cast<std::size_t>(bytes_)); });
    add_limits();
  }

  // Layout to layout with a dense side is packing to that side, or unpacking from there; so are the loops and the
  // limit.
  void add_drawn() {
    add_ours();
    const bool dense_from = case_.send.layout.contiguous_bytes();
    const bool packs = request_.operation == "pack" || (request_.operation == "transpack" && case_.receive.layout.contiguous_bytes());
    const bool unpacks = !packs && (request_.operation == "unpack" || dense_from);
    std::byte* const out = request_.operation == "pack" ? packed_.memory() : to_.base() + case_.receive.layout.true_lower_bound();
    const std::byte* const in = request_.operation == "unpack" ? packed_.memory() : from_.base() + case_.send.layout.true_lower_bound();
    for (const Form form : {Form::elements, Form::memcpy}) {
      const bool differs = unpacks ? has_blocks(case_.receive.drawn) : has_blocks(case_.send.drawn);
      if (form == Form::memcpy && !differs) continue;
      add(form == Form::elements ? "hand_elements" : "hand_memcpy", [=, this] {
        if (packs) return pack_by_hand(case_.send, form, from_.base(), out);
        if (unpacks) return unpack_by_hand(case_.receive, form, to_.base(), in);
        pack_by_hand(case_.send, form, from_.base(), packed_.memory());
        unpack_by_hand(case_.receive, form, to_.base(), packed_.memory());
      });
    }
    if (request_.operation == "transpack") {
      add(packs || unpacks ? "dense_side" : "pack_unpack", [=, this] {
        if (packs) return copy::pack(case_.send.layout, from_.base(), 0, bytes_, out);
        if (unpacks) return copy::unpack(case_.receive.layout, to_.base(), 0, bytes_, in);
        copy::pack(case_.send.layout, from_.base(), 0, bytes_, packed_.memory());
        copy::unpack(case_.receive.layout, to_.base(), 0, bytes_, packed_.memory());
      });
    }
    verified_ = contenders_.size();
    add("memcpy", [this] { std::memcpy(packed_.memory(), other_.memory(), static_cast<std::size_t>(bytes_)); });
    if (!packs && !unpacks) {
      add("limit", [this] { limit_transpack(from_lines_, from_.memory(), to_lines_, to_.memory()); });
      return;
    }
    const Lines& lines = packs ? from_lines_ : to_lines_;
    for (const Stores stores : {Stores::cached, Stores::streaming}) {
      add("limit",
          [=, this, &lines] { packs ? limit_pack(lines, from_.memory(), out, stores) : limit_unpack(lines, to_.memory(), in, stores); });
    }
    // Line by line needs a line for each share of the payload: sources that are read many times have not so many.
    if (bytes_ > 64 * static_cast<std::int64_t>(lines.lines.size())) return;
    add("limit",
        [=, this, &lines] { packs ? limit_pack_by_line(lines, from_.memory(), out) : limit_unpack_by_line(lines, to_.memory(), in); });
  }

  void add_limits() {
    std::vector<Stores> kinds{Stores::cached};
    if (request_.cold) kinds.push_back(Stores::streaming);
    for (const Lines* lines :
         request_.operation == "unpack" ? std::vector{&to_lines_, &to_sorted_} : std::vector{&from_lines_, &from_sorted_}) {
      if (request_.operation == "transpack") {
        add("limit",
            [this, lines] { limit_transpack(*lines, from_.memory(), lines == &from_lines_ ? to_lines_ : to_sorted_, to_.memory()); });
        continue;
      }
      add("limit", [this, lines] {
        request_.operation == "pack" ? limit_pack_by_line(*lines, from_.memory(), packed_.memory())
                                     : limit_unpack_by_line(*lines, to_.memory(), packed_.memory());
      });
      for (const Stores stores : kinds) {
        add("limit", [this, lines, stores] {
          if (request_.operation == "pack") {
            limit_pack(*lines, from_.memory(), packed_.memory(), stores);
          } else {
            limit_unpack(*lines, to_.memory(), packed_.memory(), stores);
          }
        });
      }
    }
  }

  void verify(const Contender& contender) {
    if (request_.operation != "pack") {
      to_.restore(before_);
      if (request_.operation == "unpack") std::memcpy(packed_.memory(), expected_packed_.data(), expected_packed_.size());
    } else {
      std::memset(packed_.memory(), 0, expected_packed_.size());
    }
    contender.run();
    const bool right = request_.operation == "pack" ? std::memcmp(packed_.memory(), expected_packed_.data(), expected_packed_.size()) == 0
                                                    : to_.snapshot() == after_;
    if (!right)
      throw std::runtime_error(case_.name + ", " + request_.operation + ": " + contender.name + " moved other bytes than the reference");
  }

  void evict_all() {
    if (request_.operation != "unpack") evict(from_lines_, from_.memory());
    if (request_.operation != "pack") evict(to_lines_, to_.memory());
    evict(packed_.memory(), bytes_);
    evict(other_.memory(), bytes_);
    evict_translations();
  }

  Case case_;
  Request request_;
  std::int64_t bytes_;
  bool drawn_;  // large cases, whose lines in the order of the stream are no limit
  Arena from_;
  Arena to_;
  Arena packed_;
  Arena other_;
  Lines from_lines_;
  Lines from_sorted_;
  Lines to_lines_;
  Lines to_sorted_;
  Bytes expected_packed_;
  Bytes before_;
  Bytes after_;
  Mpi::Type send_type_{nullptr, {nullptr}};
  Mpi::Type receive_type_{nullptr, {nullptr}};
  std::unique_ptr<copy::Team> team_;
  std::vector<Contender> contenders_;
  std::size_t verified_ = 0;
};

const CaseEntry& entry_of(std::size_t index) {
  if (index >= cases().size()) throw std::invalid_argument("there is no case " + std::to_string(index));
  return cases()[index];
}

}  // namespace

json measure_case(std::size_t index, const Request& request, const Mpi* mpi) {
  const CaseEntry& entry = entry_of(index);
  Bench bench(entry.make(entry), request);
  return bench.run(mpi);
}

json measure_drawn(const json& description, const Request& request) {
  const auto side = [](const json& said) {
    DrawnSide made = drawn_side(said);
    return Side{.type = {},
                .layout = std::move(made.layout),
                .span = made.span,
                .base = made.base,
                .nests = {},
                .records = {},
                .drawn = std::move(made.nests)};
  };
  Case what{"drawn", description.at("name").get<std::string>(), description.at("kind").get<std::string>(), side(description.at("send")),
            side(description.at("receive"))};
  if (const auto sizes = layout::check_sizes(what.send.layout, what.receive.layout); !sizes)
    throw std::invalid_argument(sizes.error().text());
  Bench bench(std::move(what), request);
  return bench.run(nullptr);
}

json measure_equivalents(std::size_t index, const Request& request) {
  const std::vector<Equivalents> all = equivalents();
  const Equivalents& e = all.at(index);
  Bench bench({"equivalents", e.name, e.name, e.sides[0], e.sides[0]}, request);
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i < e.ways.size(); ++i) {
    const layout::Layout& layout = e.sides[i].layout;
    contenders.push_back({e.ways[i], [&layout, &bench, packs = request.operation == "pack"] {
                            packs ? copy::pack(layout, bench.from(), 0, bench.bytes(), bench.packed())
                                  : copy::unpack(layout, bench.to(), 0, bench.bytes(), bench.packed());
                          }});
  }
  json row = bench.run(std::move(contenders));
  row.update({{"case", e.name}, {"operation", request.operation}, {"cache", request.cold ? "cold" : "warm"}});
  return row;
}

json measure_fragments(std::size_t index, const Request& request) {
  const CaseEntry& entry = entry_of(index);
  Bench bench(entry.make(entry), request);
  constexpr std::int64_t fragment = 4096;
  std::vector<std::int64_t> starts;
  for (std::int64_t at = 0; at < bench.bytes(); at += fragment) starts.push_back(at);
  std::vector<std::int64_t> shuffled = starts;
  std::mt19937_64 random(3);  // NOLINT(bugprone-random-generator-seed): the same order always
  std::ranges::shuffle(shuffled, random);
  const auto contender = [&](std::string name, const std::vector<std::int64_t>& order) {
    return Contender{std::move(name), [&] {
                       for (const std::int64_t at : order) {
                         const std::int64_t length = std::min(fragment, bench.bytes() - at);
                         if (request.operation == "pack") {
                           copy::pack(bench.what().send.layout, bench.from(), at, length, bench.packed() + at);
                         } else {
                           copy::unpack(bench.what().receive.layout, bench.to(), at, length, bench.packed() + at);
                         }
                       }
                     }};
  };
  json row = bench.run({contender("random order", shuffled), contender("in order", starts)});
  row.update({{"case", entry.name}, {"operation", request.operation}, {"cache", request.cold ? "cold" : "warm"}, {"bytes", bench.bytes()}});
  return row;
}

json measure_calls(const Request& request) {
  using layout::Layout;
  const Layout two = Layout::vector(2, 1, 2, Layout::bytes(8).value()).value();
  const Layout one = Layout::bytes(16).value();
  alignas(64) std::byte memory[64]{};
  alignas(64) std::byte out[64];
  const std::vector<std::int64_t> shuffled = corpus::ddtbench_list(40000, 10000, 7);
  const Layout value = Layout::bytes(8).value();
  const std::vector<Contender> contenders{
      {"pack 16 contiguous bytes", [&] { copy::pack(one, memory, 0, 16, out); }},
      {"pack 2 blocks of 8 bytes", [&] { copy::pack(two, memory, 0, 16, out); }},
      {"unpack 2 blocks of 8 bytes", [&] { copy::unpack(two, memory, 0, 16, out); }},
      {"commit an indexed_block of 10000 entries", [&] { copy::prepare(Layout::indexed_block(1, shuffled, value).value()); }},
  };
  return race(contenders, {.milliseconds = request.milliseconds});
}

}  // namespace lacuna::bench
