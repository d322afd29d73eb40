// NICs by the names that `lacuna guide --nic` takes: a real one's, or a simulated platform.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "lacuna/guide/guide.hpp"
#include "lacuna/nic/world.hpp"

namespace lacuna::guide {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModel = "model";
constexpr std::string_view kUsual = "connectx5-rocev2";  // platform 2 of the paper

std::vector<fs::path> folders() {
  if (const char* named = std::getenv("LACUNA_PROFILES"); named != nullptr && *named != '\0') return {named};
  std::error_code error;
  std::vector<fs::path> found;
  // Beside what this code is part of: the Python package's module, or a library or program that was installed; and
  // beside the program.
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&nic_label), &info) != 0 && info.dli_fname != nullptr;
  for (const fs::path& file : {known ? fs::canonical(info.dli_fname, error) : fs::path(), fs::read_symlink("/proc/self/exe", error)}) {
    found.push_back(file.parent_path() / "profiles");
    found.push_back(file.parent_path().parent_path() / "profiles");
    found.push_back(file.parent_path().parent_path() / "share/lacuna/profiles");
  }
  return found;
}

}  // namespace

std::optional<std::string> simulated_platform(const std::string& nic) {
  if (nic != kModel && !nic.starts_with(fmt::format("{}:", kModel))) return std::nullopt;
  std::string name = nic == kModel ? std::string(kUsual) : nic.substr(kModel.size() + 1);
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
