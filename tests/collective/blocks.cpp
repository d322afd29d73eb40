#include "tests/collective/blocks.hpp"

#include <fmt/format.h>

namespace lacuna::test {
namespace {

using support::Random;

Edge edge(int from, int to, Random& random, const Sizes& sizes) {
  const std::int64_t bytes = random.one_in(sizes.empty) ? 0 : random.scaled(sizes.most);
  const support::Limits limits{.depth = 3, .runs = 500, .bytes = sizes.most, .span = 64 << 10};
  return {from, to, support::random_layout_of_size(random, bytes, limits).layout,
          support::random_receive_layout(random, bytes, limits).layout};
}

// The fields of one rank, of the messages in which it is `end`.
std::vector<Field> fields(const std::vector<Edge>& edges, int rank, bool sends, std::uint64_t seed) {
  std::vector<Field> made;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if ((sends ? edges[i].from : edges[i].to) == rank) made.emplace_back(sends ? edges[i].send : edges[i].receive, seed + i);
  }
  return made;
}

// What goes into each receive, by messages one by one; empty ones too.
std::string by_messages(Communicator& ranks, const std::vector<Edge>& edges, std::vector<Field>& out, std::vector<Field>& in) {
  std::vector<protocol::Request*> requests;
  auto from = out.begin();
  auto to = in.begin();
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const int tag = static_cast<int>(i);
    if (edges[i].to == ranks.rank()) {
      requests.push_back(LACUNA_END_TRY(ranks.irecv(to->base(), to->layout, edges[i].from, tag)));
      ++to;
    }
    if (edges[i].from == ranks.rank()) {
      requests.push_back(LACUNA_END_TRY(ranks.isend(from->base(), from->layout, edges[i].to, tag)));
      ++from;
    }
  }
  LACUNA_END_TRY(ranks.wait_all(requests));
  return {};
}

std::unique_ptr<collective::Exchange> exchange_of(Communicator& ranks, const std::vector<Edge>& edges, bool all, std::vector<Field>& out,
                                                  std::vector<Field>& in, const collective::Options& options) {
  std::vector<collective::Send> sends;
  std::vector<collective::Receive> receives;
  std::vector<collective::Source> sources(static_cast<std::size_t>(ranks.size()));
  std::vector<collective::Target> targets(sources.size());
  for (const Edge& one : edges) {
    if (one.from == ranks.rank()) {
      Field& field = out[sends.size()];
      sends.push_back({one.to, {field.base(), field.layout}});
      sources[static_cast<std::size_t>(one.to)] = sends.back().what;
    }
    if (one.to == ranks.rank()) {
      Field& field = in[receives.size()];
      receives.push_back({one.from, {field.base(), field.layout}});
      targets[static_cast<std::size_t>(one.from)] = receives.back().where;
    }
  }
  return all ? collective::alltoallw_init(ranks, sources, targets, options)
             : collective::neighbor_exchange_init(ranks, sends, receives, options);
}

}  // namespace

Field::Field(Layout what, std::uint64_t seed) : layout(std::move(what)) {
  const std::int64_t low = std::min<std::int64_t>(0, layout.true_lower_bound()) - 16;
  const std::int64_t high = std::max<std::int64_t>(0, layout.true_lower_bound() + layout.true_extent()) + 16;
  origin = -low;
  bytes.resize(static_cast<std::size_t>(high - low));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i + seed * 0x9e37'79b9) * 0x9e37'79b9'7f4a'7c15 >> 56);
}

std::vector<Edge> everyone(int ranks, std::uint64_t seed, const Sizes& sizes) {
  Random random(seed);
  std::vector<Edge> made;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) made.push_back(edge(from, to, random, sizes));
  }
  return made;
}

std::vector<Edge> some(int ranks, std::uint64_t seed, const Sizes& sizes) {
  Random random(seed);
  std::vector<Edge> made;
  const int idle = static_cast<int>(random.below(ranks + 1));  // or nobody
  for (int i = 0; i < 3 * ranks; ++i) {
    const int from = static_cast<int>(random.below(ranks));
    const int to = static_cast<int>(random.below(ranks));
    if (from == idle || to == idle) continue;
    made.push_back(edge(from, to, random, sizes));
    while (random.one_in(3)) made.push_back(edge(from, to, random, sizes));
  }
  return made;
}

std::string matches_messages(Communicator& ranks, const std::vector<Edge>& edges, bool all, const collective::Options& options) {
  const auto seed = static_cast<std::uint64_t>(ranks.rank()) * 1000;
  std::vector<Field> out = fields(edges, ranks.rank(), true, seed);
  std::vector<Field> in = fields(edges, ranks.rank(), false, seed + 7);
  std::vector<Field> wanted = in;
  if (std::string wrong = by_messages(ranks, edges, out, wanted); !wrong.empty()) return wrong;
  const std::vector<Field> sent = out;
  const auto exchange = exchange_of(ranks, edges, all, out, in, options);
  for (const int again : {0, 1}) {
    if (again == 1) {
      for (Field& field : in) std::ranges::fill(field.bytes, std::byte{0x5a});
      for (Field& field : wanted) std::ranges::fill(field.bytes, std::byte{0x5a});
      if (std::string wrong = by_messages(ranks, edges, out, wanted); !wrong.empty()) return wrong;
    }
    LACUNA_END_TRY(exchange->start());
    LACUNA_END_TRY(exchange->wait());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].bytes != wanted[i].bytes) return fmt::format("receive {} is wrong, run {}: {}", i, again, exchange->explain());
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].bytes != sent[i].bytes) return fmt::format("send {} was written", i);
    }
  }
  if (options.schedule != Schedule::automatic) LACUNA_END_EXPECT(exchange->choice()->schedule == options.schedule);
  return {};
}

std::string exchanges(Communicator& ranks, std::int64_t elements, Schedule schedule) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const auto n = static_cast<std::size_t>(elements);
  const Layout column = LACUNA_END_TRY(Layout::vector(elements, 1, 2, LACUNA_END_TRY(Layout::bytes(4))));
  std::vector<std::uint32_t> out(2 * n * size, 7), in(2 * n * size, 9);
  std::vector<collective::Source> sends;
  std::vector<collective::Target> receives;
  const auto word = [](std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<std::uint32_t>(from << 20 | to << 8 | i % 256);
  };
  for (std::size_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < n; ++i) out[2 * (peer * n + i)] = word(static_cast<std::size_t>(ranks.rank()), peer, i);
    sends.push_back({&out[2 * peer * n], column});
    receives.push_back({&in[2 * peer * n], column});
  }
  const auto exchange = collective::alltoallw_init(ranks, sends, receives, {.schedule = schedule});
  LACUNA_END_TRY(exchange->start());
  LACUNA_END_TRY(exchange->wait());
  for (std::size_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < n; ++i) {
      if (in[2 * (peer * n + i)] != word(peer, static_cast<std::size_t>(ranks.rank()), i) || in[2 * (peer * n + i) + 1] != 9)
        return fmt::format("element {} from rank {} is wrong, {}", i, peer, schedule_name(schedule));
    }
  }
  return {};
}

}  // namespace lacuna::test
