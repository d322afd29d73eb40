// Ways of an MPI's data: what is chosen by which times, and profiles from anywhere.
#include "lacuna/guide/mpi_ways.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/usual_thresholds.hpp"
#include "tests/guide/mock.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace {

using guide::Distance;
using guide::MpiLibrary;
using guide::MpiPrices;
using guide::MpiUse;
using guide::MpiWay;
using guide::Piece;
using guide::UsualCpu;
using Json = nlohmann::json;

constexpr std::array kLibraries{MpiLibrary::open_mpi, MpiLibrary::mpich, MpiLibrary::mpich_4_0, MpiLibrary::intel};

// The usual times of each MPI, CPU and distance, which no verdict of a test takes from the machine.
std::vector<const MpiPrices*> all_usual() {
  std::vector<const MpiPrices*> all;
  for (const Distance distance : {Distance::near, Distance::distant})
    for (const UsualCpu cpu : {UsualCpu::zen4, UsualCpu::zen5})
      for (const MpiLibrary library : kLibraries) all.push_back(&MpiPrices::usual(library, distance, cpu));
  return all;
}
constexpr std::array kWays{MpiWay::host, MpiWay::packed, MpiWay::offered};
constexpr std::size_t kRuns = guide::kMpiRuns.size();

// A profile in which each way takes `ns` for each byte and run.
Json profile_of(const std::function<double(MpiUse, MpiWay, std::int64_t, std::int64_t)>& ns) {
  Json profile{{"schema", "lacuna-mpi-ways/4"},    {"library", "mpich"},  {"library_version", "MPICH 9"},
               {"machine", guide::machine_name()}, {"created", "today"},  {"bytes", guide::kMpiBytes},
               {"runs", guide::kMpiRuns},          {"ns", Json::object()}};
  for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
    Json ways = Json::object();
    for (const MpiWay way : kWays) {
      if (!guide::mpi_way_serves(way, static_cast<MpiUse>(use))) continue;
      Json sheet = Json::array();
      for (const std::int64_t bytes : guide::kMpiBytes) {
        for (const std::int64_t run : guide::kMpiRuns)
          sheet.push_back(2 * run <= bytes ? ns(static_cast<MpiUse>(use), way, bytes, run) : 0);
      }
      ways[std::string(guide::mpi_way_name(way))] = sheet;
    }
    profile["ns"][std::string(guide::mpi_use_name(static_cast<MpiUse>(use)))] = {{"regular", ways}};
  }
  return profile;
}
Json flat() {
  return profile_of([](MpiUse, MpiWay way, std::int64_t bytes, std::int64_t) {
    const auto size = static_cast<double>(bytes);
    return way == MpiWay::host ? size : way == MpiWay::packed ? 100 + size / 2 : 1000 + size / 4;
  });
}

class MpiProfiles : public testing::Test {
 protected:
  void SetUp() override { setenv("LACUNA_MPI_PROFILE", file_.c_str(), 1); }
  void TearDown() override {
    unsetenv("LACUNA_MPI_PROFILE");
    std::filesystem::remove(file_);
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  [[nodiscard]] std::string refusal_of(const Json& profile, MpiLibrary library = MpiLibrary::mpich) const {
    write(profile.dump());
    const base::Result<MpiPrices> read = MpiPrices::read(file_, library);
    return read ? "" : read.error().message;
  }
  std::string file_ = fmt::format("{}lacuna_mpi_ways_{}.json", testing::TempDir(), getpid());
};

TEST_F(MpiProfiles, AreWhatIsChosenBy) {
  write(flat().dump());
  const MpiPrices prices = MpiPrices::find(MpiLibrary::mpich, Distance::near);
  EXPECT_EQ(prices.file(), file_);
  const auto chosen = [&](MpiUse use, std::int64_t bytes) { return prices.choose(use, {.bytes = bytes, .run = 8}); };
  EXPECT_EQ(chosen(MpiUse::send, 256), MpiWay::packed);  // 228 of 256
  EXPECT_EQ(chosen(MpiUse::send, 255), MpiWay::host);    // not measured
  EXPECT_EQ(chosen(MpiUse::send, 1024), MpiWay::packed);
  EXPECT_EQ(chosen(MpiUse::send, 65536), MpiWay::offered);
  EXPECT_EQ(chosen(MpiUse::bcast, 65536), MpiWay::offered);
  EXPECT_EQ(chosen(MpiUse::alltoallw, 1024), MpiWay::host);
  EXPECT_EQ(chosen(MpiUse::alltoallw, 65536), MpiWay::offered);
  EXPECT_EQ(prices.choose(MpiUse::send, {.bytes = 65536, .run = 8}, 1U << static_cast<unsigned>(MpiWay::packed)), MpiWay::packed);
}

// MPIs move long runs without a copy of their own, and no sheet has such runs.
TEST_F(MpiProfiles, LeaveLongRunsOfCollectivesToTheHost) {
  write(flat().dump());
  const MpiPrices prices = MpiPrices::find(MpiLibrary::mpich, Distance::near);
  EXPECT_EQ(prices.choose(MpiUse::bcast, {.bytes = 1 << 20, .run = 32768}), MpiWay::offered);
  EXPECT_EQ(prices.choose(MpiUse::bcast, {.bytes = 1 << 20, .run = 32769}), MpiWay::host);
  EXPECT_EQ(prices.choose(MpiUse::alltoallw, {.bytes = 1 << 20, .run = 32769}), MpiWay::offered);
  EXPECT_EQ(prices.choose(MpiUse::send, {.bytes = 1 << 20, .run = 32769}), MpiWay::offered);
}

TEST_F(MpiProfiles, LeaveToTheHostWhatIsHardlyFaster) {
  const auto with = [&](double share) {
    write(profile_of([&](MpiUse, MpiWay way, std::int64_t, std::int64_t) { return way == MpiWay::host ? 1000 : 1000 * share; }).dump());
    return MpiPrices::find(MpiLibrary::mpich, Distance::near).choose(MpiUse::bcast, {.bytes = 4096, .run = 64});
  };
  EXPECT_EQ(with(0.96), MpiWay::host);
  EXPECT_EQ(with(0.94), MpiWay::packed);
}

// At cells the times are those that were measured, between them they are between, and beyond they grow with the bytes.
TEST_F(MpiProfiles, AreInterpolated) {
  write(flat().dump());
  const MpiPrices prices = MpiPrices::find(MpiLibrary::mpich, Distance::near);
  const auto host = [&](double bytes, std::int64_t run) {
    return *prices.ns(MpiUse::send, MpiWay::host, {.bytes = static_cast<std::int64_t>(bytes), .run = run});
  };
  for (const std::int64_t bytes : guide::kMpiBytes) {
    for (const std::int64_t run : {1, 8, 64, 100, 4096, 1 << 20})
      EXPECT_NEAR(host(static_cast<double>(bytes), run), static_cast<double>(bytes), 0.001 * static_cast<double>(bytes));
  }
  for (const double bytes : {300.0, 2000.0, 3500.0, 10'000.0, 700'000.0, 3e6, 1e9}) EXPECT_NEAR(host(bytes, 8) / bytes, 1, 0.09) << bytes;
  EXPECT_EQ(host(1, 8), 256);  // nothing is known of less
}

// A call, and so much for each run: that is what MPIs take, so it is met between the measured run lengths, too.
TEST_F(MpiProfiles, AreInterpolatedByTheNumberOfRuns) {
  const auto time = [](std::int64_t bytes, std::int64_t run) { return 500 + 15 * static_cast<double>(bytes) / static_cast<double>(run); };
  write(profile_of([&](MpiUse, MpiWay, std::int64_t bytes, std::int64_t run) { return time(bytes, run); }).dump());
  const MpiPrices prices = MpiPrices::find(MpiLibrary::mpich, Distance::near);
  for (const std::int64_t bytes : {16384, 65536, 1048576}) {
    for (const std::int64_t run : {8, 9, 16, 25, 64, 100, 511, 2000}) {
      const std::optional<double> ns = prices.ns(MpiUse::send, MpiWay::host, {.bytes = bytes, .run = run});
      EXPECT_NEAR(*ns / time(bytes, run), 1, 0.001) << bytes << " bytes in runs of " << run;
    }
  }
}

TEST_F(MpiProfiles, OfAnotherMachineOrLibraryDoNotHold) {
  Json other = flat();
  other["machine"] = "another";
  write(other.dump());
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).file(), "");
  EXPECT_NE(MpiPrices::find(MpiLibrary::mpich, Distance::near).warning().find("was measured on another"), std::string::npos);
  write(flat().dump());
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near, "MPICH 9").file(), file_);
  EXPECT_NE(MpiPrices::find(MpiLibrary::mpich, Distance::near, "MPICH 8").warning().find("is of MPICH 9, this is MPICH 8"),
            std::string::npos);
  EXPECT_NE(refusal_of(flat(), MpiLibrary::intel).find("is of mpich, not of intel"), std::string::npos);
  write("{");
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).file(), "");
  std::filesystem::remove(file_);
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).file(), "");
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).warning(), "");
}

// Near and distant CPUs have files of their own, and what one lacks the usual times say.
TEST_F(MpiProfiles, AreOfOneDistance) {
  unsetenv("LACUNA_MPI_PROFILE");
  const std::string folder = file_ + ".d";
  const Variable home("XDG_CONFIG_HOME", folder);
  const std::string near = MpiPrices::file_of(MpiLibrary::mpich, Distance::near);
  const std::string distant = MpiPrices::file_of(MpiLibrary::mpich, Distance::distant);
  EXPECT_TRUE(near.ends_with("/mpi-mpich.json")) << near;
  EXPECT_TRUE(distant.ends_with("/mpi-mpich-distant.json")) << distant;
  std::filesystem::create_directories(std::filesystem::path(near).parent_path());
  std::ofstream(distant) << flat();
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).file(), "");
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::near).distance(), Distance::near);
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::distant).file(), distant);
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, Distance::distant).distance(), Distance::distant);
  std::filesystem::remove_all(folder);
}

TEST_F(MpiProfiles, HaveThresholds) {
  constexpr std::int64_t never = guide::MpiThresholds::kNever;
  const auto thresholds = [&](const Json& said) {
    Json profile = flat();
    profile["thresholds"] = said;
    write(profile.dump());
    const MpiPrices prices = MpiPrices::find(MpiLibrary::mpich, Distance::near);
    EXPECT_EQ(prices.warning(), "");
    return prices.thresholds();
  };
  const guide::MpiThresholds usual = guide::usual_thresholds(MpiLibrary::mpich);
  EXPECT_EQ(thresholds(Json::object()).contiguous, usual.contiguous);
  EXPECT_EQ(thresholds({{"contiguous", {{"from", 65536}}}}).contiguous, 65536);
  EXPECT_EQ(thresholds({{"contiguous", {{"from", nullptr}}}}).contiguous, never);
  const guide::MpiThresholds all = thresholds({{"inter_node", {{"from", 262144}, {"chunk", 131072}}}});
  EXPECT_EQ(all.contiguous, usual.contiguous);
  EXPECT_EQ(all.inter_node, 262144);
  EXPECT_EQ(all.chunk, 131072);
  EXPECT_EQ(thresholds({{"inter_node", {{"from", nullptr}, {"chunk", 61440}}}}).inter_node, never);

  const Json wrong[] = {5,
                        {{"contiguous", 5}},
                        {{"contiguous", Json::object()}},
                        {{"contiguous", {{"from", 0}}}},
                        {{"contiguous", {{"from", 1e300}}}},
                        {{"contiguous", {{"from", "4 MiB"}}}},
                        {{"inter_node", {{"from", 65536}}}},
                        {{"inter_node", {{"from", 65536}, {"chunk", -1}}}},
                        {{"inter_node", {{"from", 65536}, {"chunk", nullptr}}}},
                        {{"inter_node", {{"from", 65536}, {"chunk", 1LL << 40}}}}};
  for (const Json& one : wrong) {
    Json profile = flat();
    profile["thresholds"] = one;
    EXPECT_NE(refusal_of(profile).find("thresholds"), std::string::npos) << one;
  }
}

TEST_F(MpiProfiles, ThatAreWrongAreRefused) {
  const auto spoilt = [&](const std::function<void(Json&)>& spoil) {
    Json profile = flat();
    spoil(profile);
    return refusal_of(profile);
  };
  EXPECT_EQ(spoilt([](Json&) {}), "");
  EXPECT_NE(spoilt([](Json& p) { p["schema"] = "lacuna-mpi-ways/3"; }).find("schema"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["bytes"][0] = 1; }).find("bytes"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["runs"] = 3; }).find("runs"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"].erase("bcast"); }).find("bcast"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"].erase("host"); }).find("host"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"].erase(3); }).find("39 numbers"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"][0] = 0; }).find("number 0"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"][2] = 5; }).find("number 2"), std::string::npos);
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"][0] = -1; }), "");
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"][0] = "fast"; }), "");
  EXPECT_NE(spoilt([](Json& p) { p["ns"]["send"]["regular"]["host"][0] = 1e300; }), "");
}

TEST(MpiWays, HaveNamesAndUsualTimes) {
  for (const MpiLibrary library : kLibraries) EXPECT_EQ(guide::mpi_library_from_name(guide::mpi_library_name(library)), library);
  for (const MpiPrices* const usual : all_usual()) {
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      for (const MpiWay way : kWays) {
        EXPECT_EQ(guide::mpi_way_from_name(guide::mpi_way_name(way)), way);
        for (const bool listed : {false, true}) {
          for (const std::int64_t bytes : {1, 256, 5000, 1 << 24}) {
            const std::optional<double> ns = usual->ns(static_cast<MpiUse>(use), way, {.bytes = bytes, .run = 8, .listed = listed});
            EXPECT_EQ(ns.has_value(), guide::mpi_way_serves(way, static_cast<MpiUse>(use)));
            EXPECT_GT(ns.value_or(1e9), 20);
          }
        }
      }
    }
  }
  EXPECT_EQ(guide::mpi_library_from_name("mvapich"), std::nullopt);
  EXPECT_EQ(guide::mpi_way_from_name("pigeon"), std::nullopt);
}

// What was found when these times were measured: MPICH's own datatypes take 20 times as long from 16 KiB on, and Open
// MPI's are its best way of long runs in short blocks.
TEST(MpiWays, DifferByMpi) {
  const auto usual = [](MpiLibrary library) -> const MpiPrices& { return MpiPrices::usual(library, Distance::near, UsualCpu::zen4); };
  EXPECT_EQ(usual(MpiLibrary::mpich).choose(MpiUse::send, {.bytes = 65536, .run = 8}), MpiWay::offered);
  EXPECT_EQ(usual(MpiLibrary::mpich).choose(MpiUse::gather, {.bytes = 65536, .run = 8}), MpiWay::offered);
  EXPECT_EQ(usual(MpiLibrary::mpich).choose(MpiUse::later, {.bytes = 4096, .run = 8}), MpiWay::host);
  EXPECT_EQ(usual(MpiLibrary::open_mpi).choose(MpiUse::gather, {.bytes = 3072, .run = 512}), MpiWay::host);
}

// The same times do not hold for all CPUs: those of a Zen 5 choose other ways in places.
TEST(MpiWays, DifferByCpu) {
  int differ = 0;
  for (const MpiLibrary library : kLibraries) {
    const MpiPrices &older = MpiPrices::usual(library, Distance::near, UsualCpu::zen4),
                    &newer = MpiPrices::usual(library, Distance::near, UsualCpu::zen5);
    for (const std::int64_t bytes : guide::kMpiBytes)
      for (const std::int64_t run : guide::kMpiRuns) {
        const Piece piece{.bytes = bytes, .run = run};
        differ += older.choose(MpiUse::send, piece) != newer.choose(MpiUse::send, piece) ? 1 : 0;
      }
  }
  EXPECT_GT(differ, 0);
  EXPECT_EQ(guide::usual_cpu({.amd = true, .family = 25, .model = 17}), UsualCpu::zen4);
  EXPECT_EQ(guide::usual_cpu({.amd = true, .family = 26, .model = 2}), UsualCpu::zen5);
  EXPECT_EQ(guide::usual_cpu({.amd = false, .family = 26, .model = 2}), UsualCpu::zen4);
  EXPECT_EQ(guide::usual_cpu({}), UsualCpu::zen4);
  EXPECT_EQ(&MpiPrices::usual(MpiLibrary::intel, Distance::near), &MpiPrices::usual(MpiLibrary::intel, Distance::near, guide::usual_cpu()));
}

// What is best between CPUs that share a cache is not what is best between distant ones: of messages of these sizes
// Open MPI's own datatypes take a fifth more time than shared memory does near, and twice as much distant.
TEST(MpiWays, DifferByDistance) {
  const auto chosen = [](MpiLibrary library, Distance distance, const Piece& piece) {
    return MpiPrices::usual(library, distance, UsualCpu::zen5).choose(MpiUse::send, piece);
  };
  constexpr Piece kPiece{.bytes = 65536, .run = 512};
  EXPECT_EQ(chosen(MpiLibrary::open_mpi, Distance::near, kPiece), MpiWay::host);
  EXPECT_EQ(chosen(MpiLibrary::open_mpi, Distance::distant, kPiece), MpiWay::offered);
  for (const MpiLibrary library : {MpiLibrary::open_mpi, MpiLibrary::mpich, MpiLibrary::intel}) {
    int differ = 0;
    for (const std::int64_t bytes : guide::kMpiBytes) {
      for (const std::int64_t run : guide::kMpiRuns) {
        const Piece piece{.bytes = bytes, .run = run};
        differ += chosen(library, Distance::near, piece) != chosen(library, Distance::distant, piece) ? 1 : 0;
      }
    }
    EXPECT_GT(differ, 0) << guide::mpi_library_name(library);
  }
}

TEST(MpiWays, ALineSaysHowFarCpusAre) {
  constexpr double kBound = guide::usual::kDistantLine;
  EXPECT_EQ(guide::distance_of(0), Distance::near);
  EXPECT_EQ(guide::distance_of(kBound), Distance::near);
  EXPECT_EQ(guide::distance_of(kBound + 1), Distance::distant);
  EXPECT_EQ(guide::distance_of(kBound + 1, Distance::near), Distance::near);
  EXPECT_EQ(guide::distance_of(kBound - 1, Distance::distant), Distance::distant);
  EXPECT_EQ(guide::distance_of(2 * kBound, Distance::near), Distance::distant);
  EXPECT_EQ(guide::distance_of(kBound / 2, Distance::distant), Distance::near);
  for (const Distance distance : {Distance::near, Distance::distant})
    EXPECT_EQ(guide::distance_from_name(guide::distance_name(distance)), distance);
  EXPECT_EQ(guide::distance_from_name("far"), std::nullopt);
}

// Times of another machine err more than those of this one: what is not much faster there is left to the host.
TEST(MpiWays, LeaveMoreToTheHostByUsualTimes) {
  int between = 0;  // ways that would be taken if these times were of this machine
  for (const MpiPrices* const one : all_usual()) {
    const MpiPrices& usual = *one;
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      for (std::int64_t bytes = 256; bytes <= 1 << 20; bytes *= 2) {
        const Piece piece{.bytes = bytes, .run = 64};
        const auto each = static_cast<MpiUse>(use);
        const double host = *usual.ns(each, MpiWay::host, piece), offered = *usual.ns(each, MpiWay::offered, piece);
        const double packed = usual.ns(each, MpiWay::packed, piece).value_or(offered);
        const bool message = each == MpiUse::send || each == MpiUse::later;
        if (message && bytes >= MpiPrices::kPackedAlike && packed < MpiPrices::kGain * host) continue;
        const double best = std::min(packed, offered) / host;
        if (best <= MpiPrices::kUsualGain || best >= MpiPrices::kGain) continue;
        ++between;
        EXPECT_EQ(usual.choose(each, piece), MpiWay::host) << guide::mpi_use_name(each) << " " << bytes;
      }
    }
  }
  EXPECT_GT(between, 0);
}

// The MPI moves what is packed, too, so another machine changes both times alike.
TEST(MpiWays, PackLongMessagesAsSoonAsTheyGain) {
  const MpiPrices& usual = MpiPrices::usual(MpiLibrary::intel, Distance::near, UsualCpu::zen4);
  constexpr unsigned kNotOffered = 1U << static_cast<unsigned>(MpiWay::host) | 1U << static_cast<unsigned>(MpiWay::packed);
  int between = 0;
  for (std::int64_t bytes = MpiPrices::kPackedAlike; bytes <= 1 << 20; bytes *= 2) {
    const Piece piece{.bytes = bytes, .run = 64};
    const double share = *usual.ns(MpiUse::send, MpiWay::packed, piece) / *usual.ns(MpiUse::send, MpiWay::host, piece);
    if (share <= MpiPrices::kUsualGain || share >= MpiPrices::kGain) continue;
    ++between;
    EXPECT_EQ(usual.choose(MpiUse::send, piece, kNotOffered), MpiWay::packed) << bytes;
  }
  EXPECT_GT(between, 0);
}

// A window is not in the caches where a program does other work between messages; the MPI's own small memory is.
TEST(MpiWays, LeaveShortMessagesToTheHostUnlessTheyGainMuch) {
  const MpiPrices& usual = MpiPrices::usual(MpiLibrary::open_mpi, Distance::near, UsualCpu::zen4);
  int between = 0;
  for (std::int64_t run = 8; run <= 2048; run += 8) {
    const Piece piece{.bytes = 4096, .run = run};
    const double host = *usual.ns(MpiUse::send, MpiWay::host, piece);
    const double share = *usual.ns(MpiUse::send, MpiWay::offered, piece) / host;
    if (share >= MpiPrices::kUsualGain || share <= MpiPrices::kUsualGain * guide::usual::kWindowGain) continue;
    if (*usual.ns(MpiUse::send, MpiWay::packed, piece) < MpiPrices::kUsualGain * host) continue;
    ++between;
    EXPECT_EQ(usual.choose(MpiUse::send, piece), MpiWay::host) << run;
  }
  EXPECT_GT(between, 0);
  EXPECT_EQ(usual.choose(MpiUse::send, {.bytes = 65536, .run = 64}), MpiWay::offered);
  const MpiPrices& distant = MpiPrices::usual(MpiLibrary::open_mpi, Distance::distant, UsualCpu::zen5);
  constexpr Piece kPiece{.bytes = 4096, .run = 256};
  const double host = *distant.ns(MpiUse::send, MpiWay::host, kPiece), offered = *distant.ns(MpiUse::send, MpiWay::offered, kPiece);
  EXPECT_GT(offered, MpiPrices::kUsualGain * guide::usual::kWindowGain * host);
  EXPECT_EQ(distant.choose(MpiUse::send, kPiece), MpiWay::offered);
}

// Who waits for all others waits for their CPUs: only what gains much is offered then.
TEST(MpiWays, OfferLessWhereRanksShareCpus) {
  bool differs = false;
  for (const MpiPrices* const one : all_usual()) {
    const MpiPrices& usual = *one;
    MpiPrices shared = usual;
    shared.share_cpus();
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      const auto of = static_cast<MpiUse>(use);
      constexpr std::array kOfOneRoot{MpiUse::gather, MpiUse::gatherv, MpiUse::scatter, MpiUse::scatterv, MpiUse::bcast};
      const bool alike = of == MpiUse::send || of == MpiUse::later || std::ranges::find(kOfOneRoot, of) != kOfOneRoot.end();
      for (const std::int64_t bytes : guide::kMpiBytes) {
        const Piece piece{.bytes = bytes, .run = 64};
        const MpiWay alone = usual.choose(of, piece), chosen = shared.choose(of, piece);
        if (alike || alone != MpiWay::offered) {
          EXPECT_EQ(chosen, alone);
        }
        differs = differs || chosen != alone;
        if (chosen != MpiWay::offered || alike) continue;
        EXPECT_LT(*usual.ns(of, MpiWay::offered, piece) * MpiPrices::kSharedCpus, *usual.ns(of, MpiWay::host, piece));
      }
    }
  }
  EXPECT_TRUE(differs);
}

TEST(MpiPieces, AreOfAllElements) {
  const auto vector = layout::Layout::vector(16, 1, 3, *layout::Layout::bytes(8));
  const Piece piece = Piece::of(*vector, 10);
  EXPECT_EQ(piece.bytes, 1280);
  EXPECT_EQ(piece.run, 8);
  EXPECT_FALSE(piece.listed);
  const auto listed = layout::Layout::indexed_block(2, std::vector<std::int64_t>{0, 5, 9, 30}, *layout::Layout::bytes(8));
  EXPECT_TRUE(Piece::of(*listed, 1).listed);
  EXPECT_EQ(Piece::of(*listed, 1).run, 16);
}

}  // namespace
}  // namespace lacuna::test
