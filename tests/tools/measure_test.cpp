// The measuring code itself: what verification notices, where copies lie, and a measurement from end to end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "lacuna/nic/world.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/tier.hpp"
#include "tools/corpus/ai.hpp"
#include "tools/measure/ground.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "Measuring.WorksBeyondTheGroundTwoProcesses");
LACUNA_TIER(gate, "Measuring.FindsAMethodThatGoesWrongLaterTwoProcesses");

// Memory of a case at rank 1, with a guard around it, all of it pattern.
class Field {
 public:
  explicit Field(const corpus::Case& what)
      : what_(what),
        size_(static_cast<std::size_t>(what.receive_span + 2 * measure::kGuard)),
        memory_(static_cast<std::byte*>(std::malloc(size_)), &std::free) {
    for (const measure::CheckedRanges::CheckedRange& window : windows_.list())
      measure::lay_pattern({base() + window.from, static_cast<std::size_t>(window.to - window.from)});
  }
  [[nodiscard]] std::byte* base() const { return memory_.get() + measure::kGuard; }
  [[nodiscard]] std::string examine(std::uint64_t seed) const {
    return measure::examine(what_.receive, base(), windows_, measure::stream_of(seed, what_.receive.size()));
  }
  // A right transfer, then a flipped byte.
  [[nodiscard]] std::string with_wrong_byte(std::int64_t place) const {
    measure::write_stream(what_.receive, base(), measure::stream_of(0, what_.receive.size()));
    base()[place] ^= std::byte{1};
    return examine(0);
  }

 private:
  const corpus::Case& what_;
  measure::CheckedRanges windows_{what_.receive, what_.receive_span, what_.shared_gaps};
  std::size_t size_;
  std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

// In guards, payload and gaps; in a layout that is looked at whole, and in one that is looked at through windows.
void expect_every_byte_noticed(const corpus::Case& what, std::span<const std::int64_t> places) {
  const Field field(what);
  measure::write_stream(what.receive, field.base(), measure::stream_of(0, what.receive.size()));
  EXPECT_EQ(field.examine(0), "");
  EXPECT_NE(field.examine(0), "");  // it holds the pattern again, not what was there before
  for (const std::int64_t place : places) {
    EXPECT_EQ(field.with_wrong_byte(place).find("byte " + std::to_string(place) + " of the destination"), 0U) << place;
    // Nothing is left of the wrong byte. The pattern follows the address, so its first bytes may by chance be the
    // stream's.
    const std::string left = field.examine(0);
    ASSERT_TRUE(left.starts_with("byte ") && left.contains(" of the destination")) << left;
    EXPECT_LT(std::stoll(left.substr(5)), 16) << left;
  }
  measure::write_stream(what.receive, field.base(), measure::stream_of(1, what.receive.size()));
  EXPECT_NE(field.examine(0), "");  // data of another transfer
}

TEST(Proof, NoticesEveryByte) {
  const corpus::Case what = corpus::grid_case(16, 4, corpus::Shape::symmetric).value();
  const std::int64_t places[] = {
      -measure::kGuard, -1, 0, 15, 16, 47, 48, what.receive_span - 1, what.receive_span, what.receive_span + measure::kGuard - 1};
  expect_every_byte_noticed(what, places);
}

TEST(Proof, NoticesEveryByteAroundLongBlocks) {
  const corpus::Case what = corpus::grid_case(8192, 4, corpus::Shape::symmetric).value();
  const std::int64_t places[] = {-measure::kGuard, -1, 0, 8191, 8192, 3 * 8192 - 1, 3 * 8192, what.receive_span + measure::kGuard - 1};
  expect_every_byte_noticed(what, places);
}

TEST(Proof, NoticesEveryByteNearTheBlocksOfASparseLayout) {
  constexpr std::int64_t gap = 30'000'000;
  for (const std::int64_t block : {16, 4096}) {
    const corpus::Case what = corpus::blocks_case(block, 4, gap, corpus::Shape::symmetric, false).value();
    std::int64_t looked_at = 0;
    const measure::CheckedRanges windows(what.receive, what.receive_span);
    for (const measure::CheckedRanges::CheckedRange& window : windows.list()) looked_at += window.to - window.from;
    EXPECT_LT(looked_at, 100'000);
    const std::int64_t second = gap + block;
    const std::int64_t places[] = {-measure::kGuard,
                                   -1,
                                   0,
                                   block - 1,
                                   block,
                                   block - 1 + measure::kGuard,
                                   second - measure::kGuard,
                                   second - 1,
                                   second + block - 1,
                                   what.receive_span - 1,
                                   what.receive_span + measure::kGuard - 1};
    expect_every_byte_noticed(what, places);
  }
}

// Every way to overwrite a gap with the source's gap, or the payload with another part of the stream, shows: no two
// pieces are alike.
TEST(Proof, HasNoPeriod) {
  const std::vector<std::byte> stream = measure::stream_of(3, 1 << 16);
  for (const std::size_t shift : {1, 8, 64, 256, 4096})
    EXPECT_FALSE(
        std::equal(stream.begin(), stream.end() - static_cast<std::ptrdiff_t>(shift), stream.begin() + static_cast<std::ptrdiff_t>(shift)));
  std::vector<std::byte> pattern(1 << 16);
  measure::lay_pattern(pattern);
  EXPECT_NE(pattern, stream);
  EXPECT_FALSE(std::equal(pattern.begin(), pattern.end() - 256, pattern.begin() + 256));
  std::vector<std::byte> parts(1 << 16);  // laid in pieces it is the same
  for (std::size_t at = 0; at < parts.size(); at += 7)
    measure::lay_pattern(std::span(parts).subspan(at, std::min<std::size_t>(7, parts.size() - at)));
  std::vector<std::byte> whole = parts;
  measure::lay_pattern(parts);
  EXPECT_EQ(parts, whole);
}

// The copies of a cold case: apart from one another, on the ground that is asked for, and each has its turn.
TEST(Cold, CopiesDoNotMeet) {
  for (const auto& [block, count] : std::initializer_list<std::pair<int, int>>{{16, 1}, {16, 16}, {100, 30}, {4096, 64}, {1 << 20, 4}}) {
    const corpus::Case what = corpus::cold_grid_case(block, count, corpus::Shape::symmetric).value();
    ASSERT_TRUE(what.cold());
    const std::int64_t stride = (what.receive_span - block) / std::max(1, count - 1);
    EXPECT_GE(what.receive_slot, block + 64);  // a line between two copies
    if (count > 1) {
      // The last one ends before the next block of the first
      EXPECT_LE(what.copies * what.receive_slot, stride + what.receive_slot);
      EXPECT_GE(stride, 4096);
    }
    EXPECT_GE(what.copies * ((block + 63) / 64 * 64) * count, 32 << 20);
    EXPECT_LE(measure::Workspace::bytes_on_ground(what), std::int64_t{1} << 30);
  }
}

TEST(Cold, EveryCopyHasItsTurn) {
  auto context = nic::open("local").value();
  const measure::Ground ground = measure::Ground::create(*context).value();
  const corpus::Case what = corpus::cold_grid_case(65536, 16, corpus::Shape::sender_finer).value();
  const measure::Workspace space(ground, 0, what, 1);
  std::set<std::byte*> seen;
  for (std::int64_t transfer = 0; transfer < space.copies(); ++transfer) seen.insert(space.base(transfer));
  EXPECT_EQ(std::ssize(seen), space.copies());
  EXPECT_EQ(space.base(0), space.base(space.copies()));
  EXPECT_LE(*seen.rbegin() + what.receive_span + measure::kGuard - ground.data(), measure::Workspace::bytes_on_ground(what));
}

TEST(Cases, OfAiSystemsAreCutToSize) {
  for (const corpus::AiTransfer& transfer : corpus::ai_transfers()) {
    const corpus::Case what = corpus::ai_case(std::string(transfer.name), 4 << 20).value();
    EXPECT_EQ(what.send.size(), what.receive.size()) << transfer.name;
    EXPECT_LE(what.send.size(), 4 << 20) << transfer.name;
    EXPECT_GE(what.send.size(), 1 << 20) << transfer.name;
    EXPECT_FALSE(*what.receive.overlaps()) << transfer.name;
    EXPECT_GE(what.send.true_lower_bound(), 0);
    EXPECT_EQ(corpus::blocks_within(transfer, std::int64_t{1} << 50), transfer.block_count / transfer.unit * transfer.unit);
    EXPECT_EQ(corpus::blocks_within(transfer, 1), transfer.unit);
  }
  EXPECT_EQ(corpus::ai_case("kv", 1 << 20).error().code, base::Code::invalid_argument);
}

TEST(Cases, AreTheSeedsOnes) {
  const corpus::Case one_sided = corpus::blocks_case(8, 30, 100, corpus::Shape::symmetric, true).value();
  EXPECT_EQ(one_sided.send.describe(), "30 x +108 B { 8 B }");
  EXPECT_TRUE(one_sided.receive.contiguous_bytes());
  const corpus::Case coarser = corpus::blocks_case(8, 16, 100, corpus::Shape::sender_coarser, false).value();
  EXPECT_EQ(coarser.send.describe(), "8 x +116 B { 16 B }");
  EXPECT_EQ(coarser.receive.describe(), "16 x +108 B { 8 B }");
  const corpus::Case stencil = corpus::stencil_case(21, 4).value();
  EXPECT_EQ(stencil.send.run_count(), 11);  // (points + 1) / 2
  EXPECT_EQ(stencil.send.size(), 21 * 4);
  EXPECT_EQ(corpus::stencil_case(20, 4).error().code, base::Code::invalid_argument);
  EXPECT_EQ(corpus::blocks_case(8, 3, -1, corpus::Shape::symmetric, false).error().code, base::Code::invalid_argument);
}

// Longer than any measurement lasts: it ends when it has its samples.
constexpr double kLongMs = kPatience / 1e6;

std::string measure(const corpus::Case& what, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(nic::open("local"));
  const auto link = LACUNA_END_TRY(measure::make_link(rank, *context, bootstrap));
  const measure::Report report = LACUNA_END_TRY(link->measure(what, {.max_samples = 30, .budget_ms = kLongMs, .censor_ms = kLongMs}));
  measure::Budget few{
      .max_samples = 20, .budget_ms = 5, .methods = {"umr_write", "pack", "by_hand_memcpy"}, .notifies = {method::Notify::imm}};
  const measure::Report chosen = LACUNA_END_TRY(link->measure(what, few));
  few.leave_out = {{"pack", nic::Path::slots}, {"umr_write", nic::Path::mapped}};
  const measure::Report fewer = LACUNA_END_TRY(link->measure(what, few));
  const measure::Report keys = LACUNA_END_TRY(link->measure_keys(100, few));
  const measure::Report censored = LACUNA_END_TRY(link->measure(what, {.max_samples = 20, .budget_ms = 20, .censor_ms = 0}));
  if (rank == 1) return {};
  const std::size_t paths = context->limits().paths.size();
  std::size_t combinations = 0;
  for (const method::Method& m : measure::measured_methods()) combinations += m.notifies.size() * paths;
  LACUNA_END_EXPECT(report.rows.size() + report.refusals.size() == combinations);
  for (const measure::Refusal& refusal : report.refusals) LACUNA_END_EXPECT(!refusal.wrong_data && !refusal.reason.empty());
  int best = 0;
  for (const measure::Row& row : report.rows) {
    if (row.censored) continue;  // the machine was taken away twice
    LACUNA_END_EXPECT(row.visits >= 3 && row.samples >= row.visits && row.latency_us.level >= 0.75);
    LACUNA_END_EXPECT(row.latency_us.low <= row.latency_us.value && row.latency_us.value <= row.latency_us.high && row.latency_us.low > 0);
    LACUNA_END_EXPECT(row.behind.low <= row.behind.value && row.behind.value <= row.behind.high && row.behind.low > 0);
    LACUNA_END_EXPECT(row.cpu_send_us > 0 && row.cpu_recv_us >= 0);
    best += row.behind.low == 1 && row.behind.high == 1 ? 1 : 0;
  }
  LACUNA_END_EXPECT(best >= 1);
  LACUNA_END_EXPECT(report.conditions.probes.size() >= 2);
  for (const measure::Probe& probe : report.conditions.probes)
    LACUNA_END_EXPECT(probe.message_us > 0 && probe.sender_us > 0 && probe.receiver_us > 0);
  LACUNA_END_EXPECT(report.conditions.measuring_ms > 0 && report.conditions.setup_ms > 0);
  LACUNA_END_EXPECT(report.conditions.clock_us == 0);  // one clock
  LACUNA_END_EXPECT(chosen.rows.size() == 3 * paths);  // of two-sided ones, whatever the notifications
  LACUNA_END_EXPECT(fewer.rows.size() == 3 * paths - 2);
  LACUNA_END_EXPECT(keys.rows.size() == 3 && keys.rows[1].method == "bind_key" && keys.rows[1].send.key_entries == 100);
  for (const measure::Row& row : censored.rows) LACUNA_END_EXPECT(row.censored && !row.reason.empty());
  return {};
}

// A fault that was planted is found: wrong bytes are refused, a slow method is behind.
std::string plant(std::string_view text, int rank, nic::Context& context, nic::Bootstrap& bootstrap) {
  const measure::Fault fault = LACUNA_END_TRY(measure::fault_from_text(text));
  const auto link = LACUNA_END_TRY(measure::make_link(rank, context, bootstrap, fault));
  for (const bool cold : {false, true}) {
    const corpus::Case what = LACUNA_END_TRY((cold ? corpus::cold_grid_case : corpus::grid_case)(64, 16, corpus::Shape::symmetric));
    const measure::Report report = LACUNA_END_TRY(link->measure(what, {.max_samples = 30, .budget_ms = kLongMs, .censor_ms = kLongMs}));
    if (rank == 1) continue;
    int wrong = 0;
    for (const measure::Refusal& refusal : report.refusals) {
      if (!refusal.wrong_data) continue;
      LACUNA_END_EXPECT(refusal.method == fault.method);
      LACUNA_END_EXPECT(refusal.reason.find("(block 8, byte 512 of the stream)") != std::string::npos);
      ++wrong;
    }
    LACUNA_END_EXPECT((wrong > 0) == (fault.corrupt_from >= 0));
    int slow = 0;
    for (const measure::Row& row : report.rows) {
      slow += row.method == fault.method && !row.censored ? 1 : 0;
      LACUNA_END_EXPECT(wrong == 0 || row.method != fault.method || row.censored);  // given up before it went wrong
      LACUNA_END_EXPECT(row.method != fault.method || row.censored || row.behind.value > fault.slower / 10);
    }
    LACUNA_END_EXPECT(slow > 0 || fault.slower == 1);
  }
  return {};
}

std::string plant(std::string_view text, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(nic::open("local"));
  return plant(text, rank, *context, bootstrap);
}

// Two clocks that have nothing to do with one another: one-way times come out as they are, and it is told how sure they
// are.
std::string measure_by_two_clocks(std::int64_t skew, int rank, nic::Bootstrap& bootstrap) {
  const measure::Fault fault = LACUNA_END_TRY(measure::fault_from_text("skew:" + std::to_string(skew)));
  const auto context = LACUNA_END_TRY(nic::open("local"));
  const auto link = LACUNA_END_TRY(measure::make_link(rank, *context, bootstrap, fault));
  const corpus::Case what = LACUNA_END_TRY(corpus::grid_case(1024, 1024, corpus::Shape::symmetric));
  const measure::Budget budget{
      .max_samples = 30, .budget_ms = kLongMs, .censor_ms = kLongMs, .methods = {"pack", "pack_write"}, .notifies = {method::Notify::flag}};
  const measure::Report report = LACUNA_END_TRY(link->measure(what, budget));
  if (rank == 1) return {};
  LACUNA_END_EXPECT(!report.rows.empty() && report.refusals.empty());
  LACUNA_END_EXPECT(report.conditions.clock_us > 0 && report.conditions.clock_us < kLongMs * 1e3);
  // A packed megabyte takes longer than a memory can be read, and far less than the clocks are apart.
  for (const measure::Row& row : report.rows) LACUNA_END_EXPECT(row.latency_us.value > 5 && row.latency_us.value < kLongMs * 1e3);
  return {};
}
TEST(Measuring, SetsTwoClocksBesideOneAnotherTwoProcesses) {
  for (const std::int64_t skew : {std::int64_t{0}, std::int64_t{7'000'000'000'000}, std::int64_t{-500'000}}) {
    EXPECT_EQ(in_two_processes([skew](int rank, nic::Bootstrap& b) { return measure_by_two_clocks(skew, rank, b); }), "") << skew;
  }
}

TEST(Measuring, FindsACorruptMethodTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return plant("corrupt:sgrs", rank, b); }), "");
}
TEST(Measuring, FindsAMethodThatGoesWrongLaterTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return plant("corrupt:umr_write:5", rank, b); }), "");
}
// By a simulated clock: what else runs on this machine makes other methods slow, too.
TEST(Measuring, FindsASlowMethodInVirtualTime) {
  const auto world = nic::simulate({.profile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/connectx5-rocev2.json"});
  ASSERT_TRUE(world) << world.error().text();
  const auto ended = (*world)->run([&](int rank) -> base::Result<void> {
    EXPECT_EQ(plant("slow:pack:50", rank, (*world)->context(rank), (*world)->bootstrap(rank, 1 - rank)), "");
    return {};
  });
  EXPECT_TRUE(ended) << ended.error().text();
}

TEST(Measuring, GivesAVerifiedRowForEachCombinationTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) {
              return measure(corpus::grid_case(256, 8, corpus::Shape::sender_coarser).value(), rank, b);
            }),
            "");
}
TEST(Measuring, WorksInTheGapsOfCopiesTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) {
              return measure(corpus::cold_grid_case(256, 8, corpus::Shape::sender_coarser).value(), rank, b);
            }),
            "");
}

TEST(Measuring, WorksColdWithAnyGapsTwoProcesses) {
  EXPECT_EQ(
      in_two_processes([](int rank, nic::Bootstrap& b) { return measure(corpus::cold(corpus::stencil_case(21, 64).value()), rank, b); }),
      "");
}
TEST(Measuring, WorksBeyondTheGroundTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) {
              return measure(corpus::blocks_case(256, 30, 45'000'000, corpus::Shape::symmetric, false).value(), rank, b);
            }),
            "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
