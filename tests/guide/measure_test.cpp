// The measuring code itself: medians and their intervals, what verification notices, and a measurement from end to end.
#include <gtest/gtest.h>

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

TEST(Verification, NoticesEveryByte) {
  const guide::Case what = guide::grid_case(16, 4, guide::Shape::symmetric).value();
  const std::vector<std::byte> right = guide::expected_image(what, 0);
  EXPECT_EQ(guide::difference(right.data(), right), "");
  const std::int64_t places[] = {
      -guide::kGuard, -1, 0, 15, 16, 47, 48, what.receive_span - 1, what.receive_span, what.receive_span + guide::kGuard - 1};
  for (const std::int64_t place : places) {  // in guards, payload and gaps
    std::vector<std::byte> wrong = right;
    wrong[static_cast<std::size_t>(place + guide::kGuard)] ^= std::byte{1};
    EXPECT_EQ(guide::difference(wrong.data(), right).find("byte " + std::to_string(place) + " of the destination"), 0U);
  }
  EXPECT_NE(guide::difference(right.data(), guide::expected_image(what, 1)), "");  // data of another transfer
}

// Whether a finer sender's data lands where a walk by hand says.
TEST(Verification, ExpectsWhatTheLayoutsSay) {
  const guide::Case what = guide::grid_case(8, 2, guide::Shape::sender_finer).value();  // 8 blocks of 2 bytes to 2 blocks of 8
  const std::vector<std::byte> image = guide::expected_image(what, 5);
  for (std::int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(image[static_cast<std::size_t>(guide::kGuard + i / 8 * 24 + i % 8)], guide::source_byte(5, i / 2 * 6 + i % 2));
  EXPECT_EQ(image[static_cast<std::size_t>(guide::kGuard + 8)], guide::gap_byte(guide::kGuard + 8));
}

std::string measure(bool cold, int rank, nic::Bootstrap& bootstrap) {
  const auto context = LACUNA_END_TRY(nic::open("local"));
  const auto link = LACUNA_END_TRY(guide::make_link(rank, *context, bootstrap));
  const guide::Case what = LACUNA_END_TRY(guide::grid_case(256, 8, guide::Shape::sender_coarser));
  const guide::Report report = LACUNA_END_TRY(link->measure(what, {.max_samples = 20, .budget_ms = 20, .censor_ms = 1000, .cold = cold}));
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
