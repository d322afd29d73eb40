// A folder with a profile in it, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/guide/mock.hpp"

namespace lacuna::test {

namespace fs = std::filesystem;
using guide::Profile;
using Json = nlohmann::json;

// A folder of its own for each test.
class ProfileFile : public testing::Test {
 protected:
  ProfileFile() {
    std::string name = (fs::temp_directory_path() / "lacuna-profile-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ProfileFile() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file() const { return (folder_ / "profile.json").string(); }
  static void write(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << text;
  }
  [[nodiscard]] base::Result<Profile> read(const std::string& text) const {
    write(file(), text);
    return guide::read_profile(file());
  }
  [[nodiscard]] base::Result<Profile> read(const Json& json) const { return read(json.dump()); }
  // An error that names all of `words`.
  void refuse(const Json& json, std::initializer_list<std::string_view> words) const {
    const auto profile = read(json);
    ASSERT_FALSE(profile) << json.dump();
    EXPECT_EQ(profile.error().code, base::Code::invalid_argument);
    EXPECT_TRUE(profile.error().message.contains(file())) << profile.error().message;
    for (const std::string_view word : words)
      EXPECT_TRUE(profile.error().message.contains(word)) << word << " in: " << profile.error().message;
  }

  fs::path folder_;
};

inline Json small() {
  return Json::parse(R"({"schema": 3, "nic": "local", "peers": "same machine", "machine": "a machine", "lacuna_version": "0.1.0",
    "created": "2026-01-02T03:04:05Z", "classes": [
      {"message_us": 2.5, "paths": {"mapped": {
         "prices": {"post": 12.5, "pack_run": 3}, "biases": {"pack_write/flag": [1, 2, 3, 4, 5, 6, 7, 8], "pack": [0.5, 0, 0, 0, 0, 0, 0, 0]},
         "error_median": 0.08, "error_p90": 0.2, "rows": 300}}},
      {"message_us": 9, "paths": {}}]})");
}
inline Json& path_of(Json& json) { return json["classes"][0]["paths"]["mapped"]; }

}  // namespace lacuna::test
