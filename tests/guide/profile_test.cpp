// Profiles as files: what is right is read, what is wrong is refused by name, what a newer library wrote beside it is
// passed over.
#include <gtest/gtest.h>

#include "tests/guide/profile_file.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "ProfileFile.*");

LACUNA_TIER(gate, "ProfileFile.WithAWrongByteIsAnErrorOrAProfile");

double price_of(const Profile::Path& path, Price price) { return path.prices[static_cast<std::size_t>(price)]; }

TEST_F(ProfileFile, IsReadAsItWasWritten) {
  const auto read_back = read(small());
  ASSERT_TRUE(read_back) << read_back.error().text();
  const Profile& profile = *read_back;
  EXPECT_EQ(profile.nic, "local");
  EXPECT_EQ(profile.peers, "same machine");
  EXPECT_EQ(profile.machine, "a machine");
  EXPECT_EQ(profile.version, "0.1.0");
  EXPECT_EQ(profile.created, "2026-01-02T03:04:05Z");
  EXPECT_EQ(profile.file, file());
  EXPECT_TRUE(profile.warnings.empty());
  ASSERT_EQ(profile.classes.size(), 2U);
  EXPECT_EQ(profile.classes[0].message_us, 2.5);
  EXPECT_EQ(profile.classes[1].path(nic::Path::mapped), nullptr);
  const Profile::Path* path = profile.classes[0].path(nic::Path::mapped);
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(price_of(*path, Price::post), 12.5);
  EXPECT_EQ(price_of(*path, Price::pack_run), 3);
  // What is not said is as usual, for such peers.
  EXPECT_EQ(price_of(*path, Price::poll), guide::usual_prices(nic::Path::mapped, 2.5)[static_cast<std::size_t>(Price::poll)]);
  EXPECT_EQ(path->error_median, 0.08);
  EXPECT_EQ(path->error_p90, 0.2);
  EXPECT_EQ(path->rows, 300);
  const auto bias = [&](const char* name, method::Notify notify) {
    const auto method = static_cast<std::size_t>(method::find(name).value() - method::methods().data());
    return path->biases.at(method).at(static_cast<std::size_t>(notify));
  };
  EXPECT_EQ(bias("pack_write", method::Notify::flag), (guide::Bias{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(bias("pack", method::Notify::none), (guide::Bias{0.5}));
  EXPECT_EQ(bias("pack_write", method::Notify::imm), guide::Bias{});
}

TEST_F(ProfileFile, OfANewerLibraryIsReadWithoutWhatIsNew) {
  Json json = small();
  json["colour"] = "blue";
  json["classes"][0]["moon"] = 3;
  path_of(json)["prices"]["teleport"] = -1;
  path_of(json)["prices"]["teleport_kind"] = "fast";
  path_of(json)["biases"]["teleport/flag"] = 5;
  path_of(json)["biases"]["pack_write/telepathy"] = Json::array();
  json["classes"][0]["paths"]["aether"] = "not even a path";
  const auto profile = read(json);
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->classes[0].paths.size(), 1U);
  EXPECT_EQ(price_of(profile->classes[0].paths[0], Price::post), 12.5);
}

TEST_F(ProfileFile, MissingMembersAreNamed) {
  for (const char* name : {"schema", "nic", "peers", "machine", "lacuna_version", "created", "classes"}) {
    Json json = small();
    json.erase(name);
    refuse(json, {name});
  }
  for (const char* name : {"message_us", "paths"}) {
    Json json = small();
    json["classes"][0].erase(name);
    refuse(json, {name});
  }
  for (const char* name : {"prices", "biases", "error_median", "error_p90", "rows"}) {
    Json json = small();
    path_of(json).erase(name);
    refuse(json, {name});
  }
}

TEST_F(ProfileFile, WrongTypesAreRefused) {
  for (const char* name : {"nic", "peers", "machine", "lacuna_version", "created"}) {
    for (const Json& wrong : {Json(), Json(5), Json::array(), Json::object()}) {
      Json json = small();
      json[name] = wrong;
      refuse(json, {});
    }
  }
  for (const Json& wrong : {Json(), Json("one"), Json::array({1}), Json::object()}) {
    Json json = small();
    json["schema"] = wrong;
    refuse(json, {});
    json = small();
    json["classes"][0]["message_us"] = wrong;
    refuse(json, {});
    json = small();
    path_of(json)["rows"] = wrong;
    refuse(json, {});
    json = small();
    json["classes"] = wrong.is_null() ? Json("none") : wrong;
    if (!json["classes"].empty()) refuse(json, {});
    json = small();
    json["classes"][0] = wrong;
    refuse(json, {});
    json = small();
    json["classes"][0]["paths"]["mapped"] = wrong;
    refuse(json, {});
  }
}

// Whatever is wrong is named: not only that some type somewhere is.
TEST_F(ProfileFile, WrongTypesAreNamed) {
  Json json = small();
  json["machine"] = 5;
  refuse(json, {"machine"});
  json = small();
  path_of(json)["rows"] = "many";
  refuse(json, {"rows"});
  json = small();
  path_of(json)["biases"]["pack"][3] = "a little";
  refuse(json, {"pack"});
}

// A member that is there and is not what it should be is not as if it were not there.
TEST_F(ProfileFile, ContainersOfAnotherKindAreRefused) {
  for (const Json& wrong : {Json(), Json(5), Json("cheap"), Json::array({1, 2})}) {
    Json json = small();
    path_of(json)["prices"] = wrong;
    refuse(json, {"prices"});
    json = small();
    path_of(json)["biases"] = wrong;
    refuse(json, {"biases"});
    json = small();
    json["classes"][0]["paths"] = wrong;
    refuse(json, {"paths"});
  }
  for (const Json& wrong : {Json(), Json::object()}) {
    Json json = small();
    json["classes"] = wrong;
    refuse(json, {"classes"});
  }
}

TEST_F(ProfileFile, PricesAreNumbersFromZeroOn) {
  for (const Json& wrong :
       {Json(-0.001), Json(-1e300), Json(2e12), Json(1e300), Json("3"), Json(), Json(true), Json::array({1}), Json::object()}) {
    Json json = small();
    path_of(json)["prices"]["post"] = wrong;
    refuse(json, {"path mapped", "price post"});
  }
  // What no JSON is: nlohmann's own writer would say null.
  for (const char* text : {"NaN", "nan", "Infinity", "-inf", "1e999"}) {
    std::string whole = small().dump();
    whole.replace(whole.find("12.5"), 4, text);
    const auto profile = read(whole);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().code, base::Code::invalid_argument);
  }
  for (const double right : {0.0, 1e-300, 1e12}) {
    Json json = small();
    path_of(json)["prices"]["post"] = right;
    EXPECT_TRUE(read(json)) << right;
  }
}

TEST_F(ProfileFile, TimesOfMessagesAreNumbersFromZeroOn) {
  for (const double wrong : {-1.0, -1e300, 1e300}) {
    Json json = small();
    json["classes"][0]["message_us"] = wrong;
    refuse(json, {"message_us"});
  }
}

TEST_F(ProfileFile, BiasesAreEight) {
  for (const std::size_t n : {0, 1, 7, 9}) {
    Json json = small();
    path_of(json)["biases"]["pack_write/flag"] = std::vector<double>(n);
    refuse(json, {"path mapped", "pack_write/flag", std::to_string(n) + " numbers", "8"});
  }
  for (const Json& wrong : {Json(5), Json("much"), Json(), Json::object()}) {
    Json json = small();
    path_of(json)["biases"]["pack_write/flag"] = wrong;
    refuse(json, {"pack_write/flag"});
  }
}

TEST_F(ProfileFile, OfAnotherSchemaIsRefused) {
  for (const int schema : {0, 1, 4, -1}) {
    Json json = small();
    json["schema"] = schema;
    refuse(json, {"schema " + std::to_string(schema), "2 to 3"});
  }
}

TEST_F(ProfileFile, OfSchema2HasBiasesByAnotherName) {
  Json json = small();
  json["schema"] = 2;
  refuse(json, {"leans"});
  Json& path = path_of(json);
  path["leans"] = path["biases"];
  path["biases"] = 5;  // a member of no meaning there
  const auto old = read(json);
  ASSERT_TRUE(old) << old.error().text();
  EXPECT_EQ(old->classes[0].paths[0].biases, read(small())->classes[0].paths[0].biases);
}

TEST_F(ProfileFile, CutShortAnywhereIsAnError) {
  const std::string whole = small().dump();
  ASSERT_TRUE(read(whole));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto profile = read(whole.substr(0, length));
    ASSERT_FALSE(profile) << length;
    ASSERT_EQ(profile.error().code, base::Code::invalid_argument);
  }
}

// One byte another: an error or a profile whose prices are sound, never a crash.
TEST_F(ProfileFile, WithAWrongByteIsAnErrorOrAProfile) {
  const std::string whole = small().dump();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'\0', '"', '-', '9', '{', ']', ',', '\x80', 'e'}) {
      std::string text = whole;
      text[at] = c;
      const auto profile = read(text);
      if (!profile) continue;
      for (const Profile::Class& each : profile->classes) {
        for (const Profile::Path& path : each.paths) {
          for (const double price : path.prices) ASSERT_TRUE(price >= 0 && price <= 1e12);
        }
      }
      Profile copy = *profile;
      guide::Guide guide;
      const auto& peer = guide.add(mock_nic({kMapped, kKernel}), std::move(copy), 2.5);
      ASSERT_TRUE(guide.choose(vector(10, 8, 20), bytes(80), peer));
    }
  }
}

TEST_F(ProfileFile, ThatIsNoneIsAnError) {
  for (const char* text : {"", " ", "{}", "[]", "null", "5", "\"profile\"", "not JSON", "{\"schema\": 3}", "\xff\xfe\x00"}) {
    const auto profile = read(std::string(text));
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().code, base::Code::invalid_argument);
  }
  const auto deep = read(std::string(200'000, '['));
  EXPECT_FALSE(deep);
  const auto nowhere = guide::read_profile((folder_ / "nowhere.json").string());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, base::Code::io);
  EXPECT_FALSE(guide::read_profile(folder_.string()));  // a folder
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
