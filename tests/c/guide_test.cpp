// The guide through the C API: it opens, chooses, explains, and says what is wrong.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <lacuna.h>

namespace LACUNA_TEST_FILE {

struct Free {
  void operator()(lacuna_layout* layout) const { lacuna_layout_free(layout); }
  void operator()(lacuna_guide* guide) const { lacuna_guide_free(guide); }
};
using Layout = std::unique_ptr<lacuna_layout, Free>;
using Guide = std::unique_ptr<lacuna_guide, Free>;

Layout bytes(std::int64_t count) {
  lacuna_layout* layout = nullptr;
  EXPECT_EQ(lacuna_layout_bytes(count, &layout), LACUNA_OK);
  return Layout(layout);
}
Layout loop(std::int64_t count, std::int64_t block, std::int64_t stride) {
  lacuna_layout* layout = nullptr;
  EXPECT_EQ(lacuna_layout_hvector(count, 1, stride, bytes(block).get(), &layout), LACUNA_OK);
  return Layout(layout);
}

// No profile of this machine, and nothing forced: what is chosen follows from the usual prices.
class CGuide : public testing::Test {
 protected:
  CGuide() {
    setenv("LACUNA_PROFILE", "no/such/profile.json", 1);
    unsetenv("LACUNA_METHOD");
    unsetenv("LACUNA_PATH");
  }
  ~CGuide() override {
    unsetenv("LACUNA_PROFILE");
    unsetenv("LACUNA_METHOD");
    unsetenv("LACUNA_PATH");
  }
  static Guide open(double message_us = 0) {
    lacuna_guide* guide = nullptr;
    EXPECT_EQ(lacuna_guide_open("local", message_us, &guide), LACUNA_OK) << lacuna_error_message();
    return Guide(guide);
  }
  static std::string explain(const lacuna_guide* guide, const Layout& src, const Layout& dst, lacuna_objective objective) {
    std::size_t needed = 0;
    EXPECT_EQ(lacuna_guide_explain(guide, src.get(), dst.get(), objective, nullptr, 0, &needed), LACUNA_OK) << lacuna_error_message();
    std::vector<char> text(needed + 1, '?');
    EXPECT_EQ(lacuna_guide_explain(guide, src.get(), dst.get(), objective, text.data(), text.size(), &needed), LACUNA_OK);
    EXPECT_EQ(needed + 1, text.size());
    EXPECT_EQ(std::strlen(text.data()), needed);
    return text.data();
  }
};

TEST_F(CGuide, ChoosesAsItExplains) {
  const Guide guide = open();
  const Layout src = loop(100, 16, 48);
  const Layout dst = bytes(1600);
  for (const lacuna_objective objective : {LACUNA_LATENCY, LACUNA_BANDWIDTH, LACUNA_CPU}) {
    lacuna_choice choice{};
    ASSERT_EQ(lacuna_guide_choose(guide.get(), src.get(), dst.get(), objective, &choice), LACUNA_OK) << lacuna_error_message();
    EXPECT_GT(choice.latency_us, 0);
    EXPECT_GE(choice.cpu_us[0], 0);
    EXPECT_GE(choice.cpu_us[1], 0);
    EXPECT_TRUE((std::set<std::string>{"mapped", "slots", "kernel"}).contains(choice.path)) << choice.path;
    EXPECT_TRUE((std::set<std::string>{"none", "imm", "flag"}).contains(choice.notify)) << choice.notify;
    const std::string text = explain(guide.get(), src, dst, objective);
    EXPECT_TRUE(text.starts_with("Chosen: " + std::string(choice.method))) << text;
    EXPECT_TRUE(text.substr(0, text.find('\n')).contains("on path " + std::string(choice.path))) << text;
    EXPECT_TRUE(text.contains("warning: nothing was measured here")) << text;
    lacuna_choice again{};
    ASSERT_EQ(lacuna_guide_choose(guide.get(), src.get(), dst.get(), objective, &again), LACUNA_OK);
    EXPECT_EQ(again.latency_us, choice.latency_us);
    EXPECT_EQ(again.method, choice.method) << "the same name, at the same place";
  }
}

TEST_F(CGuide, ChoosesByPlacement) {
  const Guide guide = open();
  const Layout src = loop(100, 16, 48);
  const Layout dst = bytes(1600);
  lacuna_choice shared{}, placed{};
  ASSERT_EQ(lacuna_guide_choose(guide.get(), src.get(), dst.get(), LACUNA_CPU, &shared), LACUNA_OK) << lacuna_error_message();
  lacuna_placement placement{};
  placement.objective = LACUNA_CPU;
  ASSERT_EQ(lacuna_guide_choose_placed(guide.get(), src.get(), dst.get(), &placement, &placed), LACUNA_OK) << lacuna_error_message();
  EXPECT_STREQ(placed.method, shared.method);
  EXPECT_EQ(placed.latency_us, shared.latency_us);
  placement.src_private = placement.dst_private = placement.cold = 1;
  ASSERT_EQ(lacuna_guide_choose_placed(guide.get(), src.get(), dst.get(), &placement, &placed), LACUNA_OK) << lacuna_error_message();
  char text[100];
  std::size_t needed = 0;
  ASSERT_EQ(lacuna_guide_explain_placed(guide.get(), src.get(), dst.get(), &placement, text, sizeof text, &needed), LACUNA_OK);
  EXPECT_TRUE(std::string(text).starts_with("Chosen: " + std::string(placed.method))) << text;
  placement.uses = -1;
  EXPECT_EQ(lacuna_guide_choose_placed(guide.get(), src.get(), dst.get(), &placement, &placed), LACUNA_ERR_INVALID_ARGUMENT);
  placement = {};
  placement.objective = 3;
  EXPECT_EQ(lacuna_guide_choose_placed(guide.get(), src.get(), dst.get(), &placement, &placed), LACUNA_ERR_INVALID_ARGUMENT);
}

// Names outlive the guide.
TEST_F(CGuide, NamesLiveOn) {
  lacuna_choice choice{};
  ASSERT_EQ(lacuna_guide_choose(open().get(), bytes(8).get(), bytes(8).get(), LACUNA_LATENCY, &choice), LACUNA_OK);
  EXPECT_GT(std::strlen(choice.method), 0U);
  EXPECT_GT(std::strlen(choice.path), 0U);
  EXPECT_GT(std::strlen(choice.notify), 0U);
}

// Whatever room there is: as much as fits, with its end, and how long the whole is.
TEST_F(CGuide, TextIsCutToItsRoom) {
  const Guide guide = open(3);
  const Layout src = loop(100, 16, 48);
  const std::string whole = explain(guide.get(), src, src, LACUNA_LATENCY);
  for (const std::size_t room : {std::size_t{1}, std::size_t{2}, std::size_t{80}, whole.size() - 1, whole.size(), whole.size() + 1}) {
    std::vector<char> text(room + 1, '?');
    std::size_t needed = 0;
    ASSERT_EQ(lacuna_guide_explain(guide.get(), src.get(), src.get(), LACUNA_LATENCY, text.data(), room, &needed), LACUNA_OK);
    EXPECT_EQ(needed, whole.size());
    EXPECT_EQ(std::string(text.data()), whole.substr(0, room - 1));
    EXPECT_EQ(text[room], '?') << "beyond the room";
  }
}

TEST_F(CGuide, ForcesAreTakenWhereItOpens) {
  setenv("LACUNA_METHOD", "sgrs", 1);
  setenv("LACUNA_PATH", "slots", 1);
  const Guide guide = open();
  unsetenv("LACUNA_METHOD");
  unsetenv("LACUNA_PATH");
  lacuna_choice choice{};
  ASSERT_EQ(lacuna_guide_choose(guide.get(), bytes(8).get(), bytes(8).get(), LACUNA_LATENCY, &choice), LACUNA_OK);
  EXPECT_STREQ(choice.method, "sgrs");
  EXPECT_STREQ(choice.path, "slots");
  EXPECT_STREQ(choice.notify, "none");
}

TEST_F(CGuide, ErrorsLeaveTheOutputAlone) {
  lacuna_guide* none = nullptr;
  EXPECT_EQ(lacuna_guide_open("abacus", 0, &none), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lacuna_error_message()).find("abacus"), std::string::npos) << lacuna_error_message();
  EXPECT_NE(lacuna_guide_open("model:no-such-platform", 0, &none), LACUNA_OK);
  EXPECT_NE(std::string(lacuna_error_message()).find("no-such-platform"), std::string::npos) << lacuna_error_message();
  setenv("LACUNA_METHOD", "teleport", 1);
  EXPECT_EQ(lacuna_guide_open("local", 0, &none), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(lacuna_error_message()).find("teleport"), std::string::npos) << lacuna_error_message();
  EXPECT_EQ(none, nullptr);
  unsetenv("LACUNA_METHOD");

  const Guide guide = open();
  lacuna_choice choice{};
  std::size_t needed = 77;
  const Layout eight = bytes(8);
  const Layout nine = bytes(9);
  EXPECT_EQ(lacuna_guide_choose(guide.get(), eight.get(), nine.get(), LACUNA_LATENCY, &choice), LACUNA_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(lacuna_guide_explain(guide.get(), eight.get(), nine.get(), LACUNA_LATENCY, nullptr, 0, &needed), LACUNA_ERR_INVALID_ARGUMENT);
  for (const int objective : {-1, 3, 1000}) {
    const auto wrong = static_cast<lacuna_objective>(objective);
    EXPECT_EQ(lacuna_guide_choose(guide.get(), eight.get(), eight.get(), wrong, &choice), LACUNA_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(lacuna_error_message()).find("objective"), std::string::npos) << lacuna_error_message();
    EXPECT_EQ(lacuna_guide_explain(guide.get(), eight.get(), eight.get(), wrong, nullptr, 0, &needed), LACUNA_ERR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(choice.method, nullptr);
  EXPECT_EQ(needed, 77U);
  lacuna_guide_free(nullptr);
}

// A path that is not there is an error of the choice, with its reason.
TEST_F(CGuide, WhatCannotBeSaysWhy) {
  setenv("LACUNA_PATH", "wire", 1);
  const Guide guide = open();
  lacuna_choice choice{};
  EXPECT_EQ(lacuna_guide_choose(guide.get(), bytes(8).get(), bytes(8).get(), LACUNA_LATENCY, &choice), LACUNA_ERR_UNSUPPORTED);
  EXPECT_NE(std::string(lacuna_error_message()).find("LACUNA_PATH=wire"), std::string::npos) << lacuna_error_message();
}

TEST_F(CGuide, OddTimesOfMessagesAreNoReasonToFail) {
  for (const double us : {-1.0, 1e-300, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const Guide guide = open(us);
    lacuna_choice choice{};
    EXPECT_EQ(lacuna_guide_choose(guide.get(), bytes(8).get(), bytes(8).get(), LACUNA_LATENCY, &choice), LACUNA_OK);
  }
}

TEST(CLayout, IsExplained) {
  const Layout layout = loop(1000, 16, 48);
  const std::size_t length = lacuna_layout_explain(layout.get(), nullptr, 0);
  std::vector<char> text(length + 2, '?');
  EXPECT_EQ(lacuna_layout_explain(layout.get(), text.data(), length + 1), length);
  EXPECT_EQ(std::strlen(text.data()), length);
  EXPECT_EQ(text[length + 1], '?');
  const std::string whole = text.data();
  for (const char* part : {"16,000 B", "1,000, 16.0 B on average", "1000 x +48 B { 16 B }", "run lengths"})
    EXPECT_NE(whole.find(part), std::string::npos) << part << " in:\n" << whole;
  char few[8];
  EXPECT_EQ(lacuna_layout_explain(layout.get(), few, sizeof few), length);
  EXPECT_EQ(std::string(few), whole.substr(0, 7));
  char all[400];
  lacuna_layout_explain(bytes(0).get(), all, sizeof all);
  EXPECT_NE(std::string(all).find("nothing to copy"), std::string::npos) << all;
}

}  // namespace LACUNA_TEST_FILE
