// An exchange of everyone with everyone among many simulated ranks on nodes: what `lacuna bench scale` asks for.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core.hpp"
#include "lacuna/collective/collective.hpp"
#include "lacuna/nic/world.hpp"
#include "meet.hpp"

namespace lacuna::python {
namespace {

using layout::Layout;

constexpr std::size_t kElement = 8;  // bytes, with as many between two of them

/// What is the same for all ranks, and what becomes of them.
struct Scale {
  nic::World& world;
  std::string nic;
  std::size_t elements;  // of a block
  collective::Options options;
  std::vector<std::int64_t> began, ended;
  nic::World::Usage before, after, most;  // sums over all ranks; the largest of any
  collective::Choice choice;

  static std::uint64_t word(std::size_t from, std::size_t to, std::size_t i) { return from << 40 | to << 20 | (i & 0xfffff); }

  Result<void> run(int rank) {
    nic::Context& context = world.context(rank);
    const auto own = static_cast<std::size_t>(rank);
    const auto ranks = LACUNA_TRY(protocol::Communicator::create(context, nic, protocol::form_group_by_hub(world, rank)));
    const auto size = static_cast<std::size_t>(ranks->size());
    const Layout block =
        LACUNA_TRY(Layout::vector(static_cast<std::int64_t>(elements), 1, 2, LACUNA_TRY(Layout::bytes(std::int64_t{kElement}))));
    std::vector<std::uint64_t> out(2 * elements * size, 7), in(2 * elements * size, 9);
    std::vector<collective::Source> sends;
    std::vector<collective::Target> receives;
    for (std::size_t peer = 0; peer < size; ++peer) {
      for (std::size_t i = 0; i < elements; ++i) out[2 * (peer * elements + i)] = word(own, peer, i);
      sends.push_back({&out[2 * peer * elements], block});
      receives.push_back({&in[2 * peer * elements], block});
    }
    const auto exchange = collective::alltoallw_init(*ranks, sends, receives, options);
    for (const bool measured : {false, true}) {  // the first one agrees, and connects
      std::ranges::fill(in, 9);
      LACUNA_TRY(meet(*ranks));
      if (measured) {
        add(before, world.usage(rank));
        began[own] = context.now();
      }
      LACUNA_TRY(exchange->start());
      LACUNA_TRY(exchange->wait());
      if (!measured) continue;
      ended[own] = context.now();
      note(world.usage(rank));
    }
    LACUNA_TRY(meet(*ranks));
    if (rank == 0) choice = *exchange->choice();
    return check(own, in, size);
  }

  static void add(nic::World::Usage& to, const nic::World::Usage& one) {
    to.messages += one.messages;
    to.bytes += one.bytes;
    to.not_ready += one.not_ready;
  }
  void note(const nic::World::Usage& one) {
    add(after, one);
    most.connections = std::max(most.connections, one.connections);
    most.allocated = std::max(most.allocated, one.allocated);
    most.registered = std::max(most.registered, one.registered);
  }

  Result<void> check(std::size_t rank, const std::vector<std::uint64_t>& in, std::size_t size) const {
    for (std::size_t peer = 0; peer < size; ++peer) {
      for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t at = 2 * (peer * elements + i);
        if (in[at] != word(peer, rank, i) || in[at + 1] != 9)
          return base::fail(Code::transfer,
                            "rank " + std::to_string(rank) + " has other bytes than rank " + std::to_string(peer) + " sent");
      }
    }
    return {};
  }
};

nb::dict simulate_scale(const std::string& profile, int ranks, int ranks_per_node, std::int64_t bytes, const std::string& schedule) {
  if (bytes < 1 || bytes % std::int64_t{kElement} != 0) throw nb::value_error("bytes: of a block, in elements of 8");
  const auto wanted = collective::schedule_from_name(schedule);
  if (!wanted) throw nb::value_error(("no schedule " + schedule).c_str());
  const auto world = value_or_raise(nic::simulate(
      {.profile = profile, .overrides = {}, .ranks = ranks, .ranks_per_node = ranks_per_node, .moves_bytes = true, .limits = {}}));
  const auto n = static_cast<std::size_t>(ranks);
  Scale scale{.world = *world,
              .nic = "model:" + profile,
              .elements = static_cast<std::size_t>(bytes) / kElement,
              .options = {.schedule = *wanted},
              .began = std::vector<std::int64_t>(n),
              .ended = std::vector<std::int64_t>(n),
              .before = {},
              .after = {},
              .most = {},
              .choice = {}};
  Result<void> ran;
  {
    const nb::gil_scoped_release unlocked;
    ran = world->run([&](int rank) { return scale.run(rank); });
  }
  value_or_raise(std::move(ran));
  nb::dict expected;
  for (const collective::Schedule one : {collective::Schedule::at_once, collective::Schedule::pairwise, collective::Schedule::forward}) {
    const double us = scale.choice.expected_us.at(static_cast<std::size_t>(one));
    if (us > 0) expected[std::string(collective::schedule_name(one)).c_str()] = us;
  }
  nb::dict row;
  row["us"] = static_cast<double>(*std::ranges::max_element(scale.ended) - *std::ranges::min_element(scale.began)) / 1000;
  row["schedule"] = std::string(collective::schedule_name(scale.choice.schedule));
  row["automatic"] = std::string(collective::schedule_name(scale.choice.best));
  row["expected_us"] = expected;
  row["messages"] = scale.after.messages - scale.before.messages;
  row["bytes"] = scale.after.bytes - scale.before.bytes;
  row["not_ready"] = scale.after.not_ready - scale.before.not_ready;
  row["connections"] = scale.most.connections;
  row["allocated"] = scale.most.allocated;
  row["registered"] = scale.most.registered;
  return row;
}

}  // namespace

void bind_scale(nb::module_& m) {
  m.def("simulate_scale", &simulate_scale, "profile"_a, "ranks"_a, "ranks_per_node"_a, "bytes"_a, "schedule"_a,
        "An exchange of blocks of `bytes` bytes, with gaps, among all simulated ranks, the second time: `us` from the first rank's start "
        "to the last one's end, `schedule`, the one that `automatic` would be, what the choice expected of each (`expected_us`), "
        "`messages` and `bytes` that the NICs sent, "
        "`not_ready` (messages that found no receive), and of a rank at most: `connections`, and bytes `allocated` and `registered` for "
        "messages. Every byte is compared. Errors: ValueError.");
}

}  // namespace lacuna::python
