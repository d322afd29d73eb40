// A wrong profile makes a transfer slow, never wrong. Prices of any order of magnitude choose; the other end learns the
// way from three bytes; both make it and move data, over a real NIC and over a simulated one, and every byte is looked
// at.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/guide/mock.hpp"
#include "tests/nic/rig.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"
#include "tools/measure/mailbox.hpp"
#include "tools/measure/proof.hpp"
#include "tools/measure/simulate.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "*WrongProfile.*InVirtualTime*");
LACUNA_LEFT_OUT(thread, "*ForcedKeys*");
LACUNA_TIER(gate, "*WrongProfile.*TwoThreads*");
LACUNA_TIER(gate, "*WrongProfile.*TwoProcesses/FewKeys*");
LACUNA_TIER(gate, "*WrongProfile.*TwoProcesses/SmallMessages");

using guide::Choice;
using guide::Guide;
using guide::PeerClass;
using guide::Placement;
using guide::Way;
using method::Endpoint;
using method::Role;
using support::Random;

// Twelve orders of magnitude, the ends of what a file may say, and biases that were not measured.
guide::Profile wrong_profile(Random& random, const nic::Limits& limits) {
  guide::Profile profile = mock_profile({});
  for (const nic::PathInfo& info : limits.paths) {
    guide::Profile::Path path{.path = info.path, .prices = {}, .biases = {}};
    for (double& price : path.prices) {
      price = std::pow(10, static_cast<double>(random.between(-600, 600)) / 100);
      if (random.one_in(8)) price = random.one_in(2) ? 0 : 1e12;
    }
    if (random.one_in(2)) path.biases.resize(method::methods().size());
    for (auto& notifies : path.biases) {
      for (guide::Bias& bias : notifies) {
        for (double& x : bias) x = static_cast<double>(random.between(-1000, 1000)) * (random.one_in(5) ? 1e300 : 1e-3);
      }
    }
    profile.classes[0].paths.push_back(path);
  }
  return profile;
}

// Both layouts begin at 0.
struct Pair {
  Layout src, dst;
};
Pair random_pair(Random& random) {
  const support::Limits limits{.runs = 600, .bytes = 24 << 10, .span = 1 << 17};
  const auto from_zero = [](const Layout& layout) {
    const std::int64_t one[] = {1};
    const std::int64_t back[] = {-layout.true_lower_bound()};
    return Layout::hindexed(one, back, layout).value();
  };
  if (random.one_in(4)) {  // long lists on both sides, for which an outline is a sample
    const auto list = [&](std::int64_t total) {
      std::vector<std::int64_t> offsets;
      std::vector<std::int64_t> lengths;
      for (std::int64_t at = 0, left = total; left > 0; left -= lengths.back()) {
        lengths.push_back(std::min(left, 1 + random.scaled(60)));
        offsets.push_back(at);
        at += lengths.back() + random.between(1, 5);
      }
      return Layout::blocks(offsets, lengths).value();
    };
    const std::int64_t total = random.between(1, 20'000);
    return {list(total), list(total)};
  }
  const Layout dst = support::random_receive_layout(random, -1, limits).layout;
  // The source does not overlap itself either, or its stream would not be the one that was written.
  const Layout src = from_zero(support::random_receive_layout(random, dst.size(), limits).layout);
  return {src, random.one_in(5) ? bytes(dst.size()) : from_zero(dst)};
}
std::int64_t span_of(const Layout& layout) { return std::max<std::int64_t>(1, layout.true_extent()); }

// --- over a real NIC -------------------------------------------------------------------------------------------------

// One end, with endpoints on all paths.
struct End {
  static base::Result<End> create(const nic::OpenOptions& options, nic::Bootstrap& bootstrap) {
    End end;
    end.context = LACUNA_TRY(nic::open("local", options));
    for (const nic::PathInfo& path : end.context->limits().paths) {
      if (!path.available) continue;
      end.endpoints.push_back(LACUNA_TRY(Endpoint::connect(*end.context, bootstrap, path.path)));
    }
    end.mailbox = LACUNA_TRY(measure::Mailbox::create(*end.context, bootstrap, nic::Path::mapped));
    return end;
  }
  [[nodiscard]] Endpoint* on(nic::Path path) const {
    for (const auto& endpoint : endpoints) {
      if (endpoint->qp().path() == path) return endpoint.get();
    }
    return nullptr;
  }
  std::unique_ptr<nic::Context> context;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::unique_ptr<measure::Mailbox> mailbox;
};

// Memory of one end; shared, or a process's own.
struct Field {
  static base::Result<Field> create(nic::Context& context, const Layout& layout, bool shared) {
    Field field;
    const auto size = static_cast<std::size_t>(span_of(layout) + 2 * measure::kGuard);
    if (shared) field.buffer = LACUNA_TRY(context.allocate(size));
    if (!shared) field.own.resize(size);
    const std::span<std::byte> memory = shared ? field.buffer.bytes() : std::span(field.own);
    field.region = LACUNA_TRY(context.register_memory(memory, {}));
    measure::lay_pattern(memory);
    field.base = memory.data() + measure::kGuard;
    return field;
  }
  std::vector<std::byte> own;
  nic::Buffer buffer;
  nic::Region region;
  std::byte* base = nullptr;
};

// The sender's end chooses, the other does what it is told.
base::Result<Way> agree(const End& end, const Pair& pair, const Placement& placement, Random& random, int rank, nic::Bootstrap& bootstrap) {
  if (rank == 1) return Way::decode(LACUNA_TRY(swap(bootstrap, std::array<std::byte, Way::kBytes>{})));
  Guide guide;
  const PeerClass& peer = guide.add(end.endpoints.front()->limits(), wrong_profile(random, end.context->limits()));
  const auto choice = guide.choose(pair.src, pair.dst, peer, placement);
  if (!choice) return std::unexpected(choice.error());
  LACUNA_TRY(swap(bootstrap, choice->way.encode()));
  return choice->way;
}

std::string transfer(const End& end, std::uint64_t seed, int rank, nic::Bootstrap& bootstrap) {
  Random random(seed);  // the same at both ends
  const Pair pair = random_pair(random);
  const Placement placement{.src_shared = random.one_in(2),
                            .dst_shared = random.one_in(2),
                            .cold = random.one_in(2),
                            .told = random.one_in(2),
                            .uses = random.one_in(2) ? 2.0F : 0.0F,
                            .objective = static_cast<guide::Objective>(random.below(3))};
  const Layout& own = rank == 0 ? pair.src : pair.dst;
  const Way way = LACUNA_END_TRY(agree(end, pair, placement, random, rank, bootstrap));
  const std::string name = std::string(way.method->name) + " on " + std::string(nic::path_name(way.path)) + ", notify " +
                           std::string(notify_name(way.notify)) + ", " + std::to_string(pair.src.run_count()) + " to " +
                           std::to_string(pair.dst.run_count()) + " runs of " + std::to_string(pair.src.size()) + " bytes: ";
  const Field field = LACUNA_END_TRY(Field::create(*end.context, own, rank == 0 ? placement.src_shared : placement.dst_shared));
  Endpoint* endpoint = end.on(way.path);
  if (endpoint == nullptr) return name + "no such endpoint";
  const Role role = rank == 0 ? Role::sender : Role::receiver;
  const auto made = method::make(*way.method, role, *endpoint, {pair.src, pair.dst, way.notify}, {&field.region});
  const bool both = LACUNA_END_TRY(swap(bootstrap, made.has_value()));
  if (!made) return name + made.error().text();
  if (!both) return {};  // the other end says why
  const std::vector<std::byte> stream = measure::stream_of(seed, own.size());
  if (rank == 0) measure::write_stream(own, field.base, stream);
  nic::Hello mine;
  mine.bytes = LACUNA_END_TRY(endpoint->prepare(**made, field.base, kPatience)).encode();
  const nic::Hello hello = LACUNA_END_TRY(bootstrap.exchange(mine, kPatience));
  LACUNA_END_TRY((*made)->start(field.base, LACUNA_END_TRY(method::Target::decode(hello.bytes))));
  if (const auto ran = endpoint->run(**made, kPatience); !ran) return name + ran.error().text();
  // Who is told nothing polls until the other end says that it is over.
  if (way.method->uninformed(role, way.notify)) LACUNA_END_TRY(end.mailbox->receive<std::uint64_t>(endpoint));
  if (way.method->uninformed(role == Role::sender ? Role::receiver : Role::sender, way.notify)) LACUNA_END_TRY(end.mailbox->send(seed));
  LACUNA_END_TRY(barrier(bootstrap));
  if (rank == 0) return {};
  const std::string wrong = measure::examine(own, field.base, measure::CheckedRanges(own, span_of(own)), stream);
  return wrong.empty() ? wrong : name + wrong;
}

struct Setting {
  const char* name;
  nic::OpenOptions options;
  // Each transfer in a Context of its own: endpoints keep the keys that they have made, and here there are few
  bool anew = false;
};

std::string many(const Setting& setting, std::uint64_t first, int rank, nic::Bootstrap& bootstrap) {
  std::optional<End> end = LACUNA_END_TRY(End::create(setting.options, bootstrap));
  std::string all;
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    if (setting.anew) {
      end.reset();
      end = LACUNA_END_TRY(End::create(setting.options, bootstrap));
    }
    const std::string wrong = transfer(*end, seed, rank, bootstrap);
    // Both ends stop where one does.
    const bool mine = wrong.empty();
    const bool theirs = LACUNA_END_TRY(swap(bootstrap, mine));
    if (!mine) return "seed " + std::to_string(seed) + ": " + wrong;
    if (!theirs) return all;
  }
  return all;
}

// Few keys of few entries: the passive end of a one-sided method may need more of them than there are.
const Setting kSettings[] = {
    {"Usual", {}},
    {"NoKeys", {.max_sge = 3, .indirect = {.keys = 0}}},
    {"SmallMessages", {.max_sge = 2, .max_message_bytes = 1000, .indirect = {.strided_entries = 1}}},
    {"ShortKeys", {.max_sge = 4, .indirect = {.entries = 3, .inline_entries = 2}}},
    {"FewKeys", {.indirect = {.keys = 100, .entries = 3, .inline_entries = 2, .strided_entries = 0}}, true},
    {"FewKeysSmallMessages", {.max_message_bytes = 1000, .indirect = {.keys = 8}}, true},
};

class WrongProfile : public testing::TestWithParam<Setting> {};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }
INSTANTIATE_TEST_SUITE_P(Guide, WrongProfile, testing::ValuesIn(kSettings), [](const auto& info) { return std::string(info.param.name); });

TEST_P(WrongProfile, MovesEveryByteTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return many(GetParam(), 0, rank, b); }), "");
}
TEST_P(WrongProfile, MovesEveryByteTwoThreads) {
  EXPECT_EQ(in_two_threads([](int rank, nic::Bootstrap& b) { return many(GetParam(), 1000, rank, b); }), "");
}

// What a guide chooses among the keys' methods both ends can make, however few keys there are; or it says that none can
// be.
TEST_P(WrongProfile, ForcedKeysAreMadeOrRefusedTwoThreads) {
  const auto program = [](int rank, nic::Bootstrap& bootstrap) -> std::string {
    const End end = LACUNA_END_TRY(End::create(GetParam().options, bootstrap));
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      Random random(seed);
      const Pair pair = random_pair(random);
      const char* name = random.one_in(2) ? "umr_write" : "umr_read";
      Guide guide({.method = method::find(name).value()});
      const auto choice = guide.choose(pair.src, pair.dst, guide.add(end.context->limits(), {}));
      if (!choice) continue;
      const Field field = LACUNA_END_TRY(Field::create(*end.context, rank == 0 ? pair.src : pair.dst, true));
      const auto made = method::make(*choice->way.method, rank == 0 ? Role::sender : Role::receiver, *end.on(choice->way.path),
                                     {pair.src, pair.dst, choice->way.notify}, {&field.region});
      if (!made) return "seed " + std::to_string(seed) + ": " + made.error().text();
    }
    return {};
  };
  EXPECT_EQ(in_two_threads(program), "");
}

// --- over a simulated one --------------------------------------------------------------------------------------------

TEST_P(WrongProfile, MovesEveryByteInVirtualTime) {
  const nic::WorldOptions options{
      .profile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json", .overrides = "", .limits = GetParam().options};
  const auto world = nic::simulate(options);
  ASSERT_TRUE(world) << world.error().text();
  const nic::Limits limits = (*world)->context(0).limits();
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Pair pair = random_pair(random);
    Guide guide;
    const PeerClass& peer = guide.add(limits, wrong_profile(random, limits));
    const Placement placement{.told = random.one_in(2), .objective = static_cast<guide::Objective>(random.below(3))};
    const auto choice = guide.choose(pair.src, pair.dst, peer, placement);
    ASSERT_TRUE(choice) << choice.error().text();
    const Way way = Way::decode(choice->way.encode()).value();
    corpus::Case what{"random", pair.src, pair.dst};
    what.send_span = span_of(pair.src);
    what.receive_span = span_of(pair.dst);
    const auto moved = measure::simulate_transfer(options, {what, way.method, way.notify});
    ASSERT_TRUE(moved) << way.method->name << ": " << moved.error().text();
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
