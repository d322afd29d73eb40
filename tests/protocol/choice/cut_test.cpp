// Which messages are copied, which are registered, and in how many parts.
#include "lacuna/protocol/choice/cut.hpp"
#include "lacuna/nic/world.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/support/environment.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Policy.*");
LACUNA_TIER(test, "Registered.*");
LACUNA_TIER(test, "Pinned.*");
LACUNA_TIER(gate, "Pinned.MemoryWithHolesIsCopied");

using layout::Layout;
using protocol::Communicator;
using protocol::Cut;
using protocol::CutSide;
using protocol::Options;
using protocol::Registering;
using Copied = std::pair<std::uint32_t, std::uint32_t>;

constexpr std::int64_t kPart = 100'000;

struct Bench {
  guide::Guide guide;
  const guide::PeerClass* peer = nullptr;
  Bench() {
    const auto world = support::value(
        nic::simulate({.profile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json", .overrides = {}, .ranks = 2}));
    peer = &guide.add(world->context(0).limits(), guide::usual_profile("model"));
  }
  Cut cut(Registering wanted, std::int64_t bytes, CutSide src, CutSide dst, double saved_ns = 0) {
    const Layout all = support::value(Layout::bytes(bytes));
    return protocol::choose_cut(wanted, all, all, {src, dst}, kPart, guide, *peer, {}, saved_ns);
  }
};
Copied copied(const Cut& cut) { return {cut.copied[0], cut.copied[1]}; }

TEST(Policy, DoesWhatItIsToldTo) {
  Bench bench;
  const CutSide fresh{.fits = true, .registered = false, .register_ns = 1000};
  const CutSide known{.fits = true, .registered = true, .register_ns = 1000};
  const Cut all = bench.cut(Registering::copy, 950'000, known, known);
  EXPECT_EQ(all.count(), 10U);
  EXPECT_EQ(all.size(9), 50'000);
  EXPECT_EQ(copied(all), Copied(10, 10));
  EXPECT_EQ(bench.cut(Registering::leave_pinned, 950'000, fresh, fresh).count(), 1U);
  EXPECT_EQ(copied(bench.cut(Registering::leave_pinned, 950'000, fresh, fresh)), Copied(0, 0));
  EXPECT_EQ(copied(bench.cut(Registering::pipeline, 950'000, fresh, fresh)), Copied(1, 1));
  EXPECT_EQ(copied(bench.cut(Registering::leave_pinned_pipeline, 950'000, fresh, known)), Copied(1, 0));
  EXPECT_EQ(bench.cut(Registering::leave_pinned_pipeline, 950'000, known, known).count(), 1U);
  EXPECT_EQ(bench.cut(Registering::pipeline, 1, fresh, fresh).count(), 1U);
}

TEST(Policy, CopiesWhatHasNoLayout) {
  Bench bench;
  const CutSide fits{.fits = true, .registered = false, .register_ns = 1};
  const CutSide none{};
  for (const Registering wanted : {Registering::automatic, Registering::leave_pinned, Registering::pipeline}) {
    EXPECT_EQ(bench.cut(wanted, 950'000, none, fits).copied[0], 10U);
    EXPECT_EQ(bench.cut(wanted, 950'000, fits, none).copied[1], 10U);
  }
}

TEST(Policy, CostsDecide) {
  Bench bench;
  const auto side = [](double ns) { return CutSide{.fits = true, .registered = false, .register_ns = ns}; };
  const CutSide known{.fits = true, .registered = true, .register_ns = 1e9};
  EXPECT_EQ(bench.cut(Registering::automatic, 10'000'000, known, known).count(), 1U);
  EXPECT_EQ(bench.cut(Registering::automatic, 10'000'000, side(0), side(0)).count(), 1U);
  EXPECT_EQ(copied(bench.cut(Registering::automatic, 50'000, side(1e9), side(1e9))), Copied(1, 1));
  const Cut dear = bench.cut(Registering::automatic, 10'000'000, side(1e9), side(1e9));
  EXPECT_EQ(copied(dear), Copied(dear.count(), dear.count()));
}

TEST(Policy, RegistersOnceWhatThatSavesHasPaidForIt) {
  Bench bench;
  const CutSide dear{.fits = true, .registered = false, .register_ns = 1e9};
  const CutSide known{.fits = true, .registered = true, .register_ns = 1e9};
  const Cut copies = bench.cut(Registering::automatic, 1'000'000, dear, dear);
  EXPECT_FALSE(copies.whole());
  EXPECT_GT(copies.saves_ns, 0);
  EXPECT_FALSE(bench.cut(Registering::automatic, 1'000'000, dear, dear, 1.9e9).whole());
  EXPECT_TRUE(bench.cut(Registering::automatic, 1'000'000, dear, dear, 2e9).whole());
  EXPECT_TRUE(bench.cut(Registering::automatic, 1'000'000, dear, known, 1e9).whole());
  EXPECT_FALSE(bench.cut(Registering::copy, 1'000'000, dear, dear, 2e9).whole());
}

TEST(Policy, HasNoMorePartsThanItMay) {
  Bench bench;
  const CutSide fresh{.fits = true, .registered = false, .register_ns = 0};
  const Layout all = support::value(Layout::bytes(std::int64_t{1} << 50));
  const Cut cut = protocol::choose_cut(Registering::copy, all, all, {fresh, fresh}, 1, bench.guide, *bench.peer, {});
  EXPECT_LE(cut.count(), protocol::kMostParts);
  EXPECT_EQ(cut.begin(cut.count() - 1) + cut.size(cut.count() - 1), std::int64_t{1} << 50);
}

TEST(Policy, IsNamedByTheEnvironment) {
  const Set none("LACUNA_REGISTERING", "");
  EXPECT_EQ(Options::from_environment({})->registering, Registering::automatic);
  const Set set("LACUNA_REGISTERING", "leave_pinned_pipeline");
  EXPECT_EQ(Options::from_environment({})->registering, Registering::leave_pinned_pipeline);
  const Set wrong("LACUNA_REGISTERING", "pin");
  const auto refused = Options::from_environment({});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("automatic, copy, leave_pinned, pipeline, leave_pinned_pipeline"))
      << refused.error().message;
}

// On the model, where time is exact: what is used again costs no registration again, and handles spare it.
TEST(Registered, MemoryThatIsUsedAgainIsFound) {
  const auto talk = [](Communicator& ranks) -> std::string {
    std::vector<std::byte> memory(1 << 20);
    const Layout all = support::value(Layout::bytes(1 << 20));
    for (int i = 0; i < 5; ++i) {
      if (ranks.rank() == 0) LACUNA_END_TRY(ranks.send(memory.data(), all, 1, 1));
      if (ranks.rank() == 1) LACUNA_END_TRY(ranks.recv(memory.data(), all, 0, 1));
    }
    const auto seen = ranks.statistics().memory;
    LACUNA_END_EXPECT(seen.registered == 1 && seen.found == 4 && seen.entries == 1 && seen.bytes == 1 << 20);
    LACUNA_END_EXPECT(seen.mode.contains("pins no pages"));
    return {};
  };
  EXPECT_EQ(in_model(2, {.registering = Registering::leave_pinned}, talk), "");
}

TEST(Registered, HandlesAreFoundAndEnd) {
  const auto talk = [](Communicator& ranks) -> std::string {
    std::vector<std::byte> memory(1 << 20);
    const Layout all = support::value(Layout::bytes(1 << 20));
    const std::uint32_t held = LACUNA_END_TRY(ranks.register_memory(memory.data(), 1 << 20));
    for (int i = 0; i < 3; ++i) {
      if (ranks.rank() == 0) LACUNA_END_TRY(ranks.send(memory.data(), all, 1, 1));
      if (ranks.rank() == 1) LACUNA_END_TRY(ranks.recv(memory.data(), all, 0, 1));
    }
    LACUNA_END_EXPECT(ranks.statistics().memory.registered == 1 && ranks.statistics().memory.found == 3);
    LACUNA_END_EXPECT(ranks.statistics().copied_bytes == 0);
    LACUNA_END_TRY(ranks.deregister_memory(held));
    LACUNA_END_EXPECT(!ranks.deregister_memory(held));
    LACUNA_END_EXPECT(!ranks.register_memory(nullptr, 8) && !ranks.register_memory(memory.data(), 0));
    LACUNA_END_EXPECT(ranks.statistics().memory.entries == 0);
    return {};
  };
  EXPECT_EQ(in_model(2, {}, talk), "");
  Setting queues;
  queues.nic.forbidden_paths = {nic::Path::mapped};
  EXPECT_EQ(in_ranks(queues, talk), "");
}

// Three stretches of memory, where nobody else maps anything; between them lies nothing, or what nobody may read.
enum class Between : std::uint8_t { nothing_even, nothing_uneven, forbidden };
class Islands {
 public:
  static constexpr std::size_t kBytes = 128 << 10;
  Islands(Between between, int rank) {
#if defined(__SANITIZE_THREAD__)
    constexpr std::uint64_t kWhere = 0x40'0000'0000;  // of the little that tsan leaves a program
#else
    constexpr std::uint64_t kWhere = 0x2100'0000'0000;
#endif
    base_ = reinterpret_cast<std::byte*>(kWhere + static_cast<std::uint64_t>(rank) * kAll);
    if (between != Between::nothing_even) offsets_[2] = 5 * kBytes;
    if (between == Between::forbidden) map(0, kAll, PROT_NONE);
    for (const std::int64_t offset : offsets_) map(offset, kBytes, PROT_READ | PROT_WRITE);
  }
  ~Islands() { munmap(base_, kAll); }
  Islands(const Islands&) = delete;
  Islands& operator=(const Islands&) = delete;
  [[nodiscard]] std::span<std::byte> island(std::size_t i) const { return {base_ + offsets_[i], kBytes}; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] Layout layout() const { return support::value(Layout::hindexed_block(kBytes, offsets_, support::value(Layout::bytes(1)))); }

 private:
  static constexpr std::size_t kAll = 6 * kBytes;
  void map(std::int64_t offset, std::size_t bytes, int rights) const {
    EXPECT_NE(mmap(base_ + offset, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), MAP_FAILED);
  }
  std::byte* base_;
  std::array<std::int64_t, 3> offsets_{0, 2 * kBytes, 4 * kBytes};
};

// On a NIC that pins nobody can register what is not there. The message comes all the same, and so does the next one.
std::string talk_of_islands(Communicator& ranks, Between between, bool holes) {
  const Islands islands(between, ranks.rank());
  std::vector<std::byte> whole(3 * Islands::kBytes);
  const Layout layout = holes ? islands.layout() : support::value(Layout::bytes(3 * Islands::kBytes));
  std::byte* const base = holes ? islands.base() : whole.data();
  const auto part = [&](std::size_t i) {
    return holes ? islands.island(i) : std::span(whole).subspan(i * Islands::kBytes, Islands::kBytes);
  };
  for (std::uint8_t round = 1; round <= 2; ++round) {
    for (std::uint8_t i = 0; i < 3 && ranks.rank() == 0; ++i) std::ranges::fill(part(i), std::byte(10 * round + i));
    if (ranks.rank() == 0) LACUNA_END_TRY(ranks.send(base, layout, 1, 1));
    if (ranks.rank() == 1) LACUNA_END_TRY(ranks.recv(base, layout, 0, 1));
    for (std::uint8_t i = 0; i < 3; ++i)
      LACUNA_END_EXPECT(std::ranges::all_of(part(i), [&](std::byte b) { return b == std::byte(10 * round + i); }));
  }
  // What the program may not read a kernel may pin all the same, for a device that only reads it.
  if (holes && between != Between::forbidden) LACUNA_END_EXPECT(ranks.statistics().copied_bytes > 0);
  return {};
}

TEST(Pinned, MemoryWithHolesIsCopied) {
  if (const auto pinned = can_pin(); !pinned) GTEST_SKIP() << pinned.error().text();
  for (const Between between : {Between::nothing_even, Between::nothing_uneven, Between::forbidden}) {
    for (const auto& [here, there] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
      for (const Registering registering : {Registering::automatic, Registering::leave_pinned, Registering::pipeline}) {
        Setting setting;
        setting.pins = true;
        setting.options.registering = registering;
        setting.options.part_bytes = 50'000;
        const auto talk = [&](Communicator& ranks) { return talk_of_islands(ranks, between, ranks.rank() == 0 ? here : there); };
        EXPECT_EQ(in_ranks(setting, talk), "") << static_cast<int>(between) << here << there << registering_name(registering);
      }
    }
  }
}

TEST(Registered, ExplainSaysWhatBecomesOfMemory) {
  const auto talk = [](Communicator& ranks) -> std::string {
    const Layout all = support::value(Layout::bytes(1 << 20));
    const std::string text = LACUNA_END_TRY(ranks.explain(all, all, 1 - ranks.rank()));
    LACUNA_END_EXPECT(text.contains("in 4 parts of 262144 bytes: the sender copies 1 and registers the others, the receiver copies 1"));
    LACUNA_END_EXPECT(text.contains("pins no pages"));
    return {};
  };
  EXPECT_EQ(in_model(2, {.registering = Registering::leave_pinned_pipeline}, talk), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
