// NICs by the names that `lacuna guide --nic` takes: a real one's, or a simulated platform.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModel = "model";
constexpr std::string_view kUsual = "connectx5-rocev2";  // platform 2 of the founding documents

std::vector<fs::path> folders() {
  if (const char* named = std::getenv("LACUNA_PROFILES"); named != nullptr && *named != '\0') return {named};
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const fs::path above = executable.parent_path().parent_path();
  return {above / "profiles", above / "share/lacuna/profiles"};  // of the Python package, and of an installation
}

}  // namespace

std::optional<std::string> simulated_platform(const std::string& nic) {
  if (nic != kModel && !nic.starts_with(fmt::format("{}:", kModel))) return std::nullopt;
  const std::string name = nic == kModel ? std::string(kUsual) : nic.substr(kModel.size() + 1);
  if (name.contains('/')) return name;
  std::error_code error;
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / (name + ".json");
    if (fs::exists(file, error)) return file.string();
  }
  return (folders().front() / (name + ".json")).string();  // whoever opens it says that it is not there
}

std::string nic_label(const std::string& nic) {
  const std::optional<std::string> platform = simulated_platform(nic);
  return platform ? fmt::format("{}:{}", kModel, fs::path(*platform).stem().string()) : nic;
}

Result<nic::Limits> limits_of(const std::string& nic) {
  if (const auto platform = simulated_platform(nic)) {
    const auto world = LACUNA_TRY(nic::simulate({.profile = *platform, .overrides = {}}));
    return world->context(0).limits();
  }
  return LACUNA_TRY(nic::open(nic))->limits();
}

}  // namespace lacuna::guide
