// The measuring code itself: medians and their intervals, what verification notices, and a measurement from end to end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>

#include "lacuna/guide/image.hpp"
#include "tests/support/pair.hpp"

namespace lacuna::test {
namespace {

using guide::Median;

TEST(MedianOf, IsTheMiddleWithAnIntervalOfOrderStatistics) {
  std::vector<double> samples(101);
  std::iota(samples.begin(), samples.end(), 0.0);
  const Median median = guide::median_of(samples);
  EXPECT_DOUBLE_EQ(median.value, 50);
  EXPECT_DOUBLE_EQ(median.low, 40);  // the 41st smallest and the 41st largest of 101, from tables of the sign test
  EXPECT_DOUBLE_EQ(median.high, 60);
  EXPECT_GE(median.level, 0.95);
  EXPECT_LT(median.level, 0.97);
}

TEST(MedianOf, SaysHowLittleFewSamplesMean) {
  EXPECT_DOUBLE_EQ(guide::median_of({4, 2}).value, 3);
  EXPECT_DOUBLE_EQ(guide::median_of({1, 2, 3, 4, 5}).level, 1 - 2 / 32.0);
  EXPECT_DOUBLE_EQ(guide::median_of({1, 2, 3, 4, 5, 6}).level, 1 - 2 / 64.0);
  EXPECT_DOUBLE_EQ(guide::median_of({7}).level, 0);
  EXPECT_DOUBLE_EQ(guide::median_of({}).value, 0);
}

// In guards, payload and gaps; in a layout that is looked at whole, and in one that is looked at through windows.
void expect_every_byte_noticed(const guide::Case& what, std::span<const std::int64_t> places) {
  const guide::Image right = guide::Image::expected(what, 0);
  const auto size = static_cast<std::size_t>(what.receive_span + 2 * guide::kGuard);
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(static_cast<std::byte*>(std::malloc(size)), &std::free);
  std::byte* base = memory.get() + guide::kGuard;
  right.write_to(base);
  EXPECT_EQ(right.difference(base), "");
  for (const std::int64_t place : places) {
    base[place] ^= std::byte{1};
    EXPECT_EQ(right.difference(base).find("byte " + std::to_string(place) + " of the destination"), 0U) << place;
    base[place] ^= std::byte{1};
  }
  EXPECT_NE(guide::Image::expected(what, 1).difference(base), "");  // data of another transfer
}

TEST(Verification, NoticesEveryByte) {
  const guide::Case what = guide::grid_case(16, 4, guide::Shape::symmetric).value();
  const std::int64_t places[] = {
      -guide::kGuard, -1, 0, 15, 16, 47, 48, what.receive_span - 1, what.receive_span, what.receive_span + guide::kGuard - 1};
  expect_every_byte_noticed(what, places);
}

TEST(Verification, NoticesEveryByteNearTheBlocksOfASparseLayout) {
  constexpr std::int64_t gap = 30'000'000;
  const guide::Case what = guide::blocks_case(16, 4, gap, guide::Shape::symmetric, false).value();
  EXPECT_LT(guide::Windows(what.receive, what.receive_span).bytes(), 100'000);
  constexpr std::int64_t second = gap + 16;
  const std::int64_t places[] = {-guide::kGuard,
                                 -1,
                                 0,
                                 15,
                                 16,
                                 15 + guide::kGuard,
                                 second - guide::kGuard,
                                 second - 1,
                                 second + 15,
                                 what.receive_span - 1,
                                 what.receive_span + guide::kGuard - 1};
  expect_every_byte_noticed(what, places);
}

// Whether a finer sender's data lands where a walk by hand says.
TEST(Verification, ExpectsWhatTheLayoutsSay) {
  const guide::Case what = guide::grid_case(8, 2, guide::Shape::sender_finer).value();  // 8 blocks of 2 bytes to 2 blocks of 8
  const guide::Image expected = guide::Image::expected(what, 5);
  const std::span<const std::byte> image = expected.bytes();
  for (std::int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(image[static_cast<std::size_t>(guide::kGuard + i / 8 * 24 + i % 8)], guide::source_byte(5, i / 2 * 6 + i % 2));
  EXPECT_EQ(image[static_cast<std::size_t>(guide::kGuard + 8)], guide::gap_byte(8));
}

TEST(Cases, AreTheSeedsOnes) {
  const guide::Case one_sided = guide::blocks_case(8, 30, 100, guide::Shape::symmetric, true).value();
  EXPECT_EQ(one_sided.send.describe(), "30 x +108 B { 8 B }");
  EXPECT_TRUE(one_sided.receive.contiguous_bytes());
  const guide::Case coarser = guide::blocks_case(8, 16, 100, guide::Shape::sender_coarser, false).value();
  EXPECT_EQ(coarser.send.describe(), "8 x +116 B { 16 B }");
  EXPECT_EQ(coarser.receive.describe(), "16 x +108 B { 8 B }");
  const guide::Case stencil = guide::stencil_case(21, 4).value();
  EXPECT_EQ(stencil.send.run_count(), 11);  // (points + 1) / 2
  EXPECT_EQ(stencil.send.size(), 21 * 4);
  EXPECT_EQ(guide::stencil_case(20, 4).error().code, base::Code::invalid_argument);
  EXPECT_EQ(guide::blocks_case(8, 3, -1, guide::Shape::symmetric, false).error().code, base::Code::invalid_argument);
}

std::string measure(bool cold, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(nic::open("local"));
  const auto link = LACUNA_END_TRY(guide::make_link(rank, *context, bootstrap));
  const guide::Case what = LACUNA_END_TRY(guide::grid_case(256, 8, guide::Shape::sender_coarser));
  const guide::Report report = LACUNA_END_TRY(link->measure(what, {.max_samples = 20, .budget_ms = 20, .censor_ms = 1000, .cold = cold}));
  guide::Budget few{.max_samples = 20, .budget_ms = 5, .methods = {"umr_write", "pack"}, .notifies = {method::Notify::imm}};
  const guide::Report chosen = LACUNA_END_TRY(link->measure(what, few));
  const guide::Report keys = LACUNA_END_TRY(link->measure_keys(100, few));
  const guide::Report censored = LACUNA_END_TRY(link->measure(what, {.max_samples = 20, .budget_ms = 20, .censor_ms = 0}));
  if (rank == 1) return {};
  std::size_t combinations = 0;
  for (const method::Method& m : method::methods()) combinations += m.notifies.size() * context->limits().paths.size();
  LACUNA_END_EXPECT(report.rows.size() + report.refusals.size() == combinations);
  for (const guide::Refusal& refusal : report.refusals) LACUNA_END_EXPECT(!refusal.wrong_data && !refusal.reason.empty());
  for (const guide::Row& row : report.rows) {
    LACUNA_END_EXPECT(!row.censored && row.samples >= 6 && row.latency_us.level >= 0.95);
    LACUNA_END_EXPECT(row.latency_us.low <= row.latency_us.value && row.latency_us.value <= row.latency_us.high && row.latency_us.low > 0);
    LACUNA_END_EXPECT(row.cpu_send_us > 0 && row.cpu_recv_us >= 0);
  }
  LACUNA_END_EXPECT(chosen.rows.size() == 2 * context->limits().paths.size());  // of the two-sided one, whatever the notifications
  LACUNA_END_EXPECT(keys.rows.size() == 3 && keys.rows[1].method == "bind_key" && keys.rows[1].send.key_entries == 100);
  for (const guide::Row& row : censored.rows) LACUNA_END_EXPECT(row.censored && row.samples == 1 && !row.reason.empty());
  return {};
}
TEST(Measuring, GivesAVerifiedRowForEachCombinationTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return measure(false, rank, b); }), "");
}
TEST(Measuring, WorksColdTwoProcesses) {
  EXPECT_EQ(in_two_processes([](int rank, nic::Bootstrap& b) { return measure(true, rank, b); }), "");
}

}  // namespace
}  // namespace lacuna::test
