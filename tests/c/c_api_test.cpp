// The C API: what it makes, what it moves, what it says when it cannot.
#include <lacuna.h>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace LACUNA_TEST_FILE {

struct Free {
  void operator()(lacuna_layout* layout) const { lacuna_layout_free(layout); }
};
using Handle = std::unique_ptr<lacuna_layout, Free>;

Handle bytes(std::int64_t count) {
  lacuna_layout* layout = nullptr;
  EXPECT_EQ(lacuna_layout_bytes(count, &layout), LACUNA_OK);
  return Handle(layout);
}

TEST(CApi, EveryConstructorNamesItsBytes) {
  const Handle four = bytes(4);
  lacuna_layout* out = nullptr;
  const auto expect = [&](lacuna_status status, const char* form) {
    ASSERT_EQ(status, LACUNA_OK) << lacuna_error_message();
    const Handle layout(out);
    char text[100];
    EXPECT_EQ(lacuna_layout_describe(layout.get(), text, sizeof text), std::strlen(form));
    EXPECT_STREQ(text, form);
  };
  const std::int64_t lengths[] = {1, 2};
  const std::int64_t displacements[] = {0, 10};
  const lacuna_layout* members[] = {four.get(), four.get()};
  const std::int64_t sizes[] = {3, 4};
  const std::int64_t subsizes[] = {2, 2};
  const std::int64_t starts[] = {1, 1};
  expect(lacuna_layout_contiguous(5, four.get(), &out), "20 B");
  expect(lacuna_layout_vector(3, 1, 2, four.get(), &out), "3 x +8 B { 4 B }");
  expect(lacuna_layout_hvector(3, 1, 9, four.get(), &out), "3 x +9 B { 4 B }");
  expect(lacuna_layout_indexed(2, lengths, displacements, four.get(), &out), "blocks [4 B at 0, 8 B at 40]");
  expect(lacuna_layout_indexed_block(2, 1, displacements, four.get(), &out), "2 x +40 B { 4 B }");
  expect(lacuna_layout_hindexed(2, lengths, displacements, four.get(), &out), "blocks [4 B at 0, 8 B at 10]");
  expect(lacuna_layout_hindexed_block(2, 1, displacements, four.get(), &out), "2 x +10 B { 4 B }");
  expect(lacuna_layout_struct(2, lengths, displacements, members, &out), "blocks [4 B at 0, 8 B at 10]");
  expect(lacuna_layout_subarray(2, sizes, subsizes, starts, LACUNA_ORDER_C, four.get(), &out), "at 20: 2 x +16 B { 8 B }");
  const lacuna_distribution spread[] = {LACUNA_DISTRIBUTE_BLOCK, LACUNA_DISTRIBUTE_CYCLIC};
  const std::int64_t block_sizes[] = {LACUNA_DISTRIBUTE_DEFAULT, 1};
  const std::int64_t grid[] = {1, 2};
  const std::int64_t strides[] = {40, 8};
  expect(lacuna_layout_darray(2, 1, 2, sizes, spread, block_sizes, grid, LACUNA_ORDER_C, four.get(), &out), "at 4: 6 x +8 B { 4 B }");
  expect(lacuna_layout_strided(4, 2, subsizes, strides, &out), "2 x +40 B { 2 x +8 B { 4 B } }");
  expect(lacuna_layout_slice(four.get(), 1, 2, &out), "at 1: 2 B");
  expect(lacuna_layout_resized(four.get(), 0, 12, &out), "4 B");
  expect(lacuna_layout_blocks(2, displacements, lengths, &out), "blocks [1 B at 0, 2 B at 10]");
  expect(lacuna_layout_paged(4, 2, displacements, &out), "2 x +40 B { 4 B }");
}

TEST(CApi, PacksUnpacksAndTranspacks) {
  const Handle four = bytes(4);
  lacuna_layout* out = nullptr;
  ASSERT_EQ(lacuna_layout_hvector(3, 1, 8, four.get(), &out), LACUNA_OK);
  const Handle strided(out);
  const Handle dense = bytes(12);
  const std::string source = "abcd....efgh....ijkl";
  std::string packed(12, '-');
  ASSERT_EQ(lacuna_pack(strided.get(), source.data(), 0, 12, packed.data()), LACUNA_OK);
  EXPECT_EQ(packed, "abcdefghijkl");
  std::string target(20, '_');
  ASSERT_EQ(lacuna_unpack(strided.get(), target.data(), 2, 4, "XYZW"), LACUNA_OK);
  EXPECT_EQ(target, "__XY____ZW__________");
  ASSERT_EQ(lacuna_transpack(dense.get(), packed.data(), strided.get(), target.data()), LACUNA_OK);
  EXPECT_EQ(target, "abcd____efgh____ijkl");
  EXPECT_EQ(lacuna_pack(strided.get(), source.data(), 9, 4, packed.data()), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_STREQ(lacuna_error_message(), "invalid argument: bytes 9 + 4 of a stream of 12");
}

TEST(CApi, ThreadsPackAndUnpackTogether) {
  constexpr std::int64_t kCount = 200'000;
  lacuna_layout* out = nullptr;
  ASSERT_EQ(lacuna_layout_hvector(kCount, 1, 12, bytes(8).get(), &out), LACUNA_OK);
  const Handle strided(out);
  ASSERT_EQ(lacuna_layout_prepare(strided.get()), LACUNA_OK);
  std::vector<char> memory(12 * kCount);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>(i % 127);
  std::vector<char> alone(8 * kCount), together(8 * kCount), back(memory.size());
  lacuna_team* team = nullptr;
  ASSERT_EQ(lacuna_team_make(3, &team), LACUNA_OK) << lacuna_error_message();
  ASSERT_EQ(lacuna_pack(strided.get(), memory.data(), 0, 8 * kCount, alone.data()), LACUNA_OK);
  ASSERT_EQ(lacuna_team_pack(team, strided.get(), memory.data(), 0, 8 * kCount, together.data()), LACUNA_OK);
  EXPECT_EQ(together, alone);
  ASSERT_EQ(lacuna_team_unpack(team, strided.get(), back.data(), 0, 8 * kCount, together.data()), LACUNA_OK);
  for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(back[i], i % 12 < 8 ? memory[i] : 0) << i;
  ASSERT_EQ(lacuna_layout_hvector(kCount / 2, 2, 24, bytes(8).get(), &out), LACUNA_OK);
  const Handle pairs(out);
  std::vector<char> moved(12 * kCount), expected(12 * kCount);
  ASSERT_EQ(lacuna_transpack(strided.get(), memory.data(), pairs.get(), expected.data()), LACUNA_OK);
  ASSERT_EQ(lacuna_team_transpack(team, strided.get(), memory.data(), pairs.get(), moved.data()), LACUNA_OK);
  EXPECT_EQ(moved, expected);
  EXPECT_EQ(lacuna_team_transpack(team, strided.get(), memory.data(), bytes(8).get(), moved.data()), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_team_pack(team, strided.get(), memory.data(), 1, 8 * kCount, alone.data()), LACUNA_ERR_INVALID_ARGUMENT);

  const std::int64_t zeros[] = {0, 0};
  ASSERT_EQ(lacuna_layout_hindexed_block(2, 1, zeros, strided.get(), &out), LACUNA_OK);
  const Handle twice(out);
  int overlaps = 0;
  ASSERT_EQ(lacuna_layout_overlaps(twice.get(), &overlaps), LACUNA_OK);
  EXPECT_EQ(overlaps, 1);
  EXPECT_EQ(lacuna_team_unpack(team, twice.get(), back.data(), 0, 8, together.data()), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_team_transpack(team, twice.get(), memory.data(), twice.get(), back.data()), LACUNA_ERR_INVALID_ARGUMENT);
  lacuna_team_free(team);
  lacuna_team_free(nullptr);
  EXPECT_EQ(lacuna_team_make(0, &team), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_team_make(1025, &team), LACUNA_ERR_INVALID_ARGUMENT);
}

TEST(CApi, WhatIsNoDistributionIsRefused) {
  const std::int64_t two[] = {2};
  const lacuna_distribution wrong[] = {static_cast<lacuna_distribution>(3)};
  lacuna_layout* out = nullptr;
  EXPECT_EQ(lacuna_layout_darray(2, 0, 1, two, wrong, two, two, LACUNA_ORDER_C, bytes(4).get(), &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_layout_darray(2, 0, -1, two, wrong, two, two, LACUNA_ORDER_C, bytes(4).get(), &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_layout_strided(4, -1, two, two, &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_layout_slice(bytes(4).get(), 3, 2, &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
}

TEST(CApi, EncodesAndDecodes) {
  const Handle four = bytes(4);
  lacuna_layout* out = nullptr;
  ASSERT_EQ(lacuna_layout_hvector(1000, 1, 8, four.get(), &out), LACUNA_OK);
  const Handle layout(out);
  std::size_t needed = 0;
  EXPECT_EQ(lacuna_layout_encode(layout.get(), nullptr, 0, &needed), LACUNA_ERR_LIMIT);
  std::vector<unsigned char> wire(needed);
  ASSERT_EQ(lacuna_layout_encode(layout.get(), wire.data(), wire.size(), &needed), LACUNA_OK);
  ASSERT_EQ(lacuna_layout_decode(wire.data(), wire.size(), &out), LACUNA_OK);
  const Handle again(out);
  EXPECT_EQ(lacuna_layout_same_runs(layout.get(), again.get()), 1);
  EXPECT_EQ(lacuna_layout_size(again.get()), 4000);
  EXPECT_EQ(lacuna_layout_run_count(again.get()), 1000);
  EXPECT_EQ(lacuna_layout_true_extent(again.get()), 7996);
  wire.pop_back();
  EXPECT_EQ(lacuna_layout_decode(wire.data(), wire.size(), &out), LACUNA_ERR_MALFORMED);
}

TEST(CApi, ErrorsLeaveTheOutputAlone) {
  const Handle four = bytes(4);
  lacuna_layout* out = nullptr;
  EXPECT_EQ(lacuna_layout_bytes(-1, &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_layout_hindexed(-1, nullptr, nullptr, four.get(), &out), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_layout_contiguous(INT64_MAX, four.get(), &out), LACUNA_ERR_OVERFLOW);
  const std::int64_t one[] = {1};
  const lacuna_layout* const member = four.get();
  EXPECT_EQ(lacuna_layout_struct(INT64_MAX / 4, one, one, &member, &out), LACUNA_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(lacuna_layout_contiguous(INT64_MAX, four.get(), &out), LACUNA_ERR_OVERFLOW);
  EXPECT_NE(std::string(lacuna_error_message()).find("overflow"), std::string::npos);
  lacuna_layout_free(nullptr);
  EXPECT_STREQ(lacuna_version(), LACUNA_VERSION);
}

}  // namespace LACUNA_TEST_FILE
