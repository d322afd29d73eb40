// What registering memory costs on the NIC under test: median of register_memory and of ending the region, of memory
// whose pages are there. The figures go into registration.json in the folder LACUNA_TEST_RESULTS, if it is set.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/nic/rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

constexpr std::size_t kLeast = 4 << 10;
constexpr std::size_t kMost = 64 << 20;
constexpr std::int64_t kTimeForEach = kSecond / 4;  // size
constexpr std::size_t kFewest = 5;                  // rounds
constexpr std::size_t kEnough = 200;

// Of this process, pages that nobody may move (proc_pid_status(5), VmPin).
std::int64_t pinned_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPin:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

double median_us(std::vector<std::int64_t> ns) {
  std::ranges::sort(ns);
  return static_cast<double>(ns[ns.size() / 2]) / 1000;
}

TEST(RegistrationCost, IsMeasuredFrom4KiBTo64MiB) {
  const auto context = open_tested();
  ASSERT_TRUE(context) << context.error().text();
  const auto memory = (*context)->allocate(kMost);
  ASSERT_TRUE(memory) << memory.error().text();
  std::memset(memory->data(), 1, kMost);
  nlohmann::json rows;
  for (std::size_t bytes = kLeast; bytes <= kMost; bytes *= 4) {
    std::vector<std::int64_t> begin;
    std::vector<std::int64_t> end;
    const std::int64_t pinned = pinned_bytes();
    const std::int64_t until = (*context)->now() + kTimeForEach;
    while (begin.size() < kFewest || (begin.size() < kEnough && (*context)->now() < until)) {
      const std::int64_t first = (*context)->now();
      base::Result<nic::Region> region = (*context)->register_memory(memory->bytes().first(bytes), {});
      const std::int64_t second = (*context)->now();
      ASSERT_TRUE(region) << bytes << " bytes: " << region.error().text();
      if (begin.empty() && tested_nic().starts_with("verbs:")) {
        EXPECT_GE(pinned_bytes() - pinned, static_cast<std::int64_t>(bytes)) << "a device's pages are pinned";
      }
      const std::int64_t third = (*context)->now();
      *region = nic::Region();  // what it was goes with the temporary
      begin.push_back(second - first);
      end.push_back((*context)->now() - third);
    }
    rows.push_back({{"bytes", bytes}, {"register_us", median_us(begin)}, {"deregister_us", median_us(end)}, {"samples", begin.size()}});
  }
  for (const auto& row : rows) {
    EXPECT_GT(row["register_us"].get<double>(), 0);
    EXPECT_GT(row["deregister_us"].get<double>(), 0);
  }
  if (const char* folder = std::getenv("LACUNA_TEST_RESULTS")) {
    std::ofstream file(std::string(folder) + "/registration.json");
    file << nlohmann::json{{"nic", (*context)->nic_name()}, {"rows", rows}}.dump(1) << "\n";
    EXPECT_TRUE(file.good());
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
