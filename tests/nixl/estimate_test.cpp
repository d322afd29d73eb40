// What a transfer is expected to take is answered from the profile, and decides whether one end moves it alone.
#include <gtest/gtest.h>

#include "lacuna/nixl/estimate.hpp"
#include "tests/guide/profile_file.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using nixl::Estimator;
using nixl::Part;

class NixlEstimate : public ProfileFile {
 protected:
  // A profile in which a post on path kernel costs so much.
  [[nodiscard]] std::string with_post_ns(double ns) const {
    Json json = small();
    json["machine"] = guide::machine_name();
    json["classes"][0]["paths"]["kernel"] = {
        {"prices", {{"post", ns}}}, {"biases", Json::object()}, {"error_median", 0.1}, {"error_p90", 0.25}, {"rows", 100}};
    EXPECT_TRUE(read(json)) << read(json).error().text();
    return file();
  }
  static Part part(std::int64_t pieces) {
    const Layout bytes = support::value(Layout::bytes(64));
    const Layout strided = support::value(Layout::hvector(pieces, 1, 128, bytes));
    return {.local = nullptr, .ours = strided, .memory = {}, .base = 0, .offset = 0, .theirs = strided, .own = {}};
  }
  const std::unique_ptr<nic::Context> context_ = nic::open("local").value();
};

TEST_F(NixlEstimate, IsOfTheProfile) {
  const Set profile("LACUNA_PROFILE", with_post_ns(1000).c_str());
  Estimator estimator(*context_, nic::Path::kernel);
  Part one = part(1);
  ASSERT_TRUE(estimator.decide(one, true, true));
  EXPECT_TRUE(one.direct);
  const auto cheap = support::value(estimator.of({one}, true));
  EXPECT_GE(cheap.ns, 1000);
  EXPECT_NEAR(cheap.margin_ns, 0.25 * cheap.ns, 1e-6 * cheap.ns);

  const Set dearer("LACUNA_PROFILE", with_post_ns(20'000).c_str());
  Estimator other(*context_, nic::Path::kernel);
  ASSERT_TRUE(other.decide(one, true, true));
  EXPECT_TRUE(one.direct);
  EXPECT_NEAR(support::value(other.of({one}, true)).ns - cheap.ns, 19'000, 1000);
}

TEST_F(NixlEstimate, DecidesForWhatTakesLess) {
  const Set profile("LACUNA_PROFILE", with_post_ns(10'000'000).c_str());
  Estimator estimator(*context_, nic::Path::kernel);
  Part one = part(1);
  ASSERT_TRUE(estimator.decide(one, true, true));
  EXPECT_FALSE(one.direct);
  EXPECT_GT(support::value(estimator.of({one}, true)).ns, 0);
}

TEST_F(NixlEstimate, LeavesManyPiecesToBothEnds) {
  const Set profile("LACUNA_PROFILE", "/nonexistent/profile.json");
  Estimator estimator(*context_, nic::Path::kernel);
  Part many = part(10'000), one = part(1);
  ASSERT_TRUE(estimator.decide(many, true, true));
  EXPECT_FALSE(many.direct);
  ASSERT_TRUE(estimator.decide(one, false, true));
  EXPECT_TRUE(one.direct);
  ASSERT_TRUE(estimator.decide(one, false, false));
  EXPECT_FALSE(one.direct);
  Estimator without(*context_, std::nullopt);
  ASSERT_TRUE(without.decide(one, true, true));
  EXPECT_FALSE(one.direct);
  EXPECT_GT(support::value(estimator.of({many}, true)).ns, support::value(estimator.of({one}, true)).ns);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
