// Which profile is found, what is doubtful about it, and whose prices hold for a peer.
#include "tests/guide/profile_file.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

// --- which one -------------------------------------------------------------------------------------------------------

TEST_F(ProfileFile, IsWhereTheEnvironmentSays) {
  const Variable named("LACUNA_PROFILE", "some/where.json");
  EXPECT_EQ(guide::profile_file("local"), "some/where.json");
  EXPECT_EQ(guide::profile_file("model:connectx5-rocev2"), "some/where.json");
  const Variable not_named("LACUNA_PROFILE", "");
  const Variable config("XDG_CONFIG_HOME", folder_.string());
  const std::string local = guide::profile_file("local");
  EXPECT_TRUE(local.starts_with(folder_.string() + "/lacuna/profiles/")) << local;
  EXPECT_TRUE(local.ends_with("/local.json")) << local;
  EXPECT_EQ(guide::profile_file("model:connectx5-rocev2"), folder_.string() + "/lacuna/profiles/simulated/model-connectx5-rocev2.json");
  EXPECT_EQ(guide::profile_file("model"), guide::profile_file("model:connectx5-rocev2"));
  // The base directory specification says that a relative one is to be ignored.
  const Variable relative("XDG_CONFIG_HOME", "config");
  const Variable home("HOME", folder_.string());
  EXPECT_TRUE(guide::profile_file("local").starts_with(folder_.string() + "/.config/lacuna/profiles/")) << guide::profile_file("local");
}

class FoundProfile : public ProfileFile {
 protected:
  // What find_profile() says of NIC local; all warnings in one text.
  [[nodiscard]] std::string warnings(const Json& json, const std::string& nic = "local") {
    write(file(), json.dump());
    found_ = guide::find_profile(nic);
    std::string all;
    for (const std::string& warning : found_.warnings) all += warning + "\n";
    return all;
  }
  static Json right() {
    Json json = small();
    json["machine"] = guide::machine_name();
    json["lacuna_version"] = base::version();
    return json;
  }
  Variable named_{"LACUNA_PROFILE", file()};
  Profile found_;
};

TEST_F(FoundProfile, IsTheFiles) {
  EXPECT_EQ(warnings(right()), "");
  EXPECT_EQ(found_.file, file());
  EXPECT_EQ(found_.classes.size(), 2U);
}

TEST_F(FoundProfile, IsTheUsualOneWithoutAFile) {
  const Profile profile = guide::find_profile("local");
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(profile.warnings[0].contains(file())) << profile.warnings[0];
  EXPECT_TRUE(profile.warnings[0].contains("`lacuna guide`")) << profile.warnings[0];
  EXPECT_EQ(profile.file, "");
  EXPECT_TRUE(profile.classes.empty());
  EXPECT_TRUE(guide::find_profile("model").warnings[0].contains("`lacuna guide --nic model`"));
}

TEST_F(FoundProfile, IsTheUsualOneIfTheFileIsWrong) {
  Json json = right();
  json.erase("peers");
  EXPECT_TRUE(warnings(json).contains("peers"));
  EXPECT_TRUE(warnings(json).contains("the usual prices hold"));
  EXPECT_EQ(found_.file, "");
}

TEST_F(FoundProfile, SaysWhatIsDoubtful) {
  Json json = right();
  json["machine"] = "a machine far away";
  EXPECT_TRUE(warnings(json).contains("from elsewhere: measured on a machine far away")) << warnings(json);
  EXPECT_EQ(found_.classes.size(), 2U) << "it is taken all the same";
  json = right();
  json["lacuna_version"] = "0.0.99";
  EXPECT_TRUE(warnings(json).contains("older than the library")) << warnings(json);
  json["lacuna_version"] = "999.0.0";
  EXPECT_EQ(warnings(json), "");
  json = right();
  json["nic"] = "other";
  EXPECT_TRUE(warnings(json).contains("is of NIC other, not of local")) << warnings(json);
  json["machine"] = "a machine far away";
  json["lacuna_version"] = "0.0.99";
  EXPECT_NE(warnings(json), "");
  EXPECT_EQ(found_.warnings.size(), 3U);
  // A simulated NIC is the same everywhere.
  json["nic"] = "model:connectx5-rocev2";
  json["lacuna_version"] = base::version();
  EXPECT_EQ(warnings(json, "model"), "");
}

// --- classes of peers ------------------------------------------------------------------------------------------------

TEST(ProfileClass, IsTheNearest) {
  Profile profile;
  EXPECT_EQ(profile.of(5), nullptr);
  profile.classes = {{.message_us = 3, .paths = {}}, {.message_us = 9, .paths = {}}};
  const auto which = [&](double message_us) -> double {
    const Profile::Class* found = profile.of(message_us);
    return found != nullptr ? found->message_us : -1;
  };
  EXPECT_EQ(which(0), 3) << "the first where nobody knows";
  EXPECT_EQ(which(3), 3);
  EXPECT_EQ(which(5.1), 3);  // geometrically nearer: the middle of 3 and 9 is 5.196
  EXPECT_EQ(which(5.3), 9);
  EXPECT_EQ(which(3 / Profile::kSameClass * 1.001), 3);
  EXPECT_EQ(which(3 / Profile::kSameClass * 0.999), -1);
  EXPECT_EQ(which(9 * Profile::kSameClass * 0.999), 9);
  EXPECT_EQ(which(9 * Profile::kSameClass * 1.001), -1);
  profile.classes.push_back({.message_us = 0, .paths = {}});  // where it was not measured
  EXPECT_EQ(which(1e6), 0);
}

// Peers of no class have the usual prices, and a warning.
TEST(ProfileClass, OfNoneIsUsual) {
  guide::Guide guide;
  const auto profile = [] {
    Profile made = mock_profile({{nic::Path::mapped, prices({{Price::post, 1}})}});
    made.classes[0].message_us = 3;
    return made;
  };
  const guide::PeerClass& near = guide.add(mock_nic({kMapped}), profile(), 3.1);
  EXPECT_EQ(near.routes()[0].prices, prices({{Price::post, 1}}));
  EXPECT_TRUE(near.profile().warnings.empty());
  const guide::PeerClass& far = guide.add(mock_nic({kMapped}), profile(), 30);
  EXPECT_EQ(far.routes()[0].prices, guide::usual_prices(nic::Path::mapped, 30));
  ASSERT_EQ(far.profile().warnings.size(), 1U);
  EXPECT_TRUE(far.profile().warnings[0].contains("30.0 us")) << far.profile().warnings[0];
  // A path that the file does not have.
  EXPECT_EQ(guide.add(mock_nic({kKernel}), profile(), 3).routes()[0].prices, guide::usual_prices(nic::Path::kernel, 3));
}

// A wire that CPUs carry bytes over, as libfabric's providers in software do, has prices of its own.
TEST(UsualPrices, OfAWireAreThoseOfWhoCarries) {
  guide::Guide guide;
  nic::PathInfo carried = kWire;
  carried.mover = nic::Mover::both;
  EXPECT_EQ(guide.add(mock_nic({kWire}), {}).routes()[0].prices, guide::usual_prices(nic::Path::wire));
  EXPECT_EQ(guide.add(mock_nic({carried}), {}).routes()[0].prices, guide::usual_prices(nic::Path::wire, 0, nic::Mover::both));
  EXPECT_NE(guide::usual_prices(nic::Path::wire), guide::usual_prices(nic::Path::wire, 0, nic::Mover::both));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
