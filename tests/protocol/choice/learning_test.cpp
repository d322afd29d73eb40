// Programs that learn while they exchange messages, on a simulated NIC, where the same messages always take the same
// time: a profile that misleads is corrected, by this program and for the next one, and what that costs stays within
// its bound.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/environment.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "LearningInVirtualTime.*");
LACUNA_TIER(gate, "LearningInVirtualTime.*");

namespace fs = std::filesystem;
using guide::Learning;
using layout::Layout;
using protocol::Communicator;
using Json = nlohmann::json;

struct Outcome {
  double us = 0;  // of a message, a mean
  std::string way, learning;
};

class LearningInVirtualTime : public testing::Test {
 protected:
  LearningInVirtualTime() {
    std::string name = (fs::temp_directory_path() / "lacuna-learning-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    setenv("LACUNA_PROFILE", file().c_str(), 1);
  }
  ~LearningInVirtualTime() override {
    unsetenv("LACUNA_PROFILE");
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::string file() const { return (folder_ / "profile.json").string(); }

  // Messages with gaps from rank 0 to rank 1, each answered by an empty one.
  static Outcome run(Learning learning, int messages) {
    Outcome outcome;
    const protocol::Options options{.learn = {.learning = learning, .one_in = 10}, .registering = protocol::Registering::leave_pinned};
    const std::string wrong = in_model(2, options, [&](Communicator& ranks) -> std::string {
      const Layout src = support::value(Layout::vector(64, 1024, 2048, support::value(Layout::bytes(1))));
      const Layout dst = support::value(Layout::bytes(src.size()));
      const Layout none = support::value(Layout::bytes(0));
      const bool sends = ranks.rank() == 0;
      std::vector<std::byte> memory(static_cast<std::size_t>(sends ? src.true_extent() : dst.size()), std::byte{5});
      const std::int64_t begin = ranks.context().now();
      for (int i = 0; i < messages; ++i) {
        if (sends) LACUNA_END_TRY(ranks.send(memory.data(), src, 1, 0));
        if (sends) LACUNA_END_TRY(ranks.recv(memory.data(), none, 1, 1));
        if (!sends) LACUNA_END_TRY(ranks.recv(memory.data(), dst, 0, 0));
        if (!sends) LACUNA_END_TRY(ranks.send(memory.data(), none, 0, 1));
      }
      if (sends) return {};
      outcome.us = static_cast<double>(ranks.context().now() - begin) / 1e3 / messages;
      const protocol::Statistics statistics = ranks.statistics();
      outcome.learning = statistics.learning;
      const auto most = std::ranges::max_element(statistics.ways, {}, [](const auto& way) { return way.count.messages; });
      if (most != statistics.ways.end()) outcome.way = most->way.method->name;
      return {};
    });
    EXPECT_EQ(wrong, "");
    return outcome;
  }

  // Usual prices; but this method is said to take so much more or less.
  void mislead(const std::string& method, double log_factor) const {
    Json biases = Json::object();
    for (const auto* notify : {"none", "imm", "flag"}) biases[method + "/" + notify] = {log_factor, 0, 0, 0, 0, 0, 0, 0};
    const Json path{{"prices", Json::object()}, {"biases", biases}, {"error_median", 0}, {"error_p90", 0}, {"rows", 1}};
    const Json json{{"schema", 3},
                    {"nic", "model"},
                    {"peers", ""},
                    {"machine", ""},
                    {"lacuna_version", "0.1.0"},
                    {"created", ""},
                    {"classes", {{{"message_us", 0}, {"paths", {{"wire", path}}}}}}};
    std::ofstream(file()) << json;
  }

  fs::path folder_;
};

TEST_F(LearningInVirtualTime, CorrectsAProfileThatMisleads) {
  const Outcome best = run(Learning::off, 200);
  mislead("sgrs", -0.5);
  const Outcome misled = run(Learning::off, 200);
  ASSERT_EQ(misled.way, "sgrs");
  ASSERT_GT(misled.us, 1.02 * best.us);
  // It learns to go without what costs it most, at once and in what follows.
  const Outcome learning = run(Learning::on, 20'000);
  EXPECT_NE(learning.way, "sgrs") << learning.learning;
  EXPECT_LT(learning.us, misled.us);
  EXPECT_FALSE(learning.learning.contains(", 0 for the other way")) << learning.learning;
  const Outcome after = run(Learning::off, 200);
  EXPECT_NE(after.way, "sgrs");
  EXPECT_LT(after.us, 1.01 * best.us);
}

TEST_F(LearningInVirtualTime, CostsHardlyAnythingWhereNothingIsToBeLearned) {
  const Outcome without = run(Learning::off, 20'000);
  const Outcome observed = run(Learning::observe, 20'000);
  EXPECT_EQ(observed.way, without.way);
  EXPECT_LT(observed.us, 1.0051 * without.us) << observed.learning;
  EXPECT_FALSE(observed.learning.contains(" 0 comparisons decided")) << observed.learning;
  EXPECT_FALSE(fs::exists(guide::learned_file(file())));  // it only tells
  const Outcome learned = run(Learning::on, 20'000);
  EXPECT_LT(learned.us, 1.0051 * without.us) << learned.learning;
  EXPECT_TRUE(fs::exists(guide::learned_file(file())));
}

TEST_F(LearningInVirtualTime, GoesOnWhereItCannotBeKept) {
  mislead("pack_write", 0.5);
  fs::create_directory(guide::learned_file(file()) + ".lock");
  EXPECT_NE(run(Learning::on, 10'000).learning, "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
