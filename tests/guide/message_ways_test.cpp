// Ways of messages: what is chosen by which times, what can be, and profiles from anywhere.
#include "lacuna/guide/message_ways.hpp"

#include <cmath>
#include <cstdlib>

#include "tests/guide/profile_file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::MessageCase;
using guide::MessagePrices;
using guide::MessageWay;
using guide::Piece;

constexpr std::array kEvery{MessageWay::eager,  MessageWay::wide,   MessageWay::narrow,
                            MessageWay::passed, MessageWay::direct, MessageWay::rendezvous};

// The member of a profile in which each way takes what `ns` says.
Json messages_of(const std::function<double(MessageWay, bool, std::int64_t, std::int64_t)>& ns) {
  Json made{{"bytes", guide::kMessageBytes}, {"runs", guide::kMessageRuns}, {"ns", Json::object()}};
  for (const bool listed : {false, true}) {
    Json ways = Json::object();
    for (const MessageWay way : kEvery) {
      const guide::Axes axes = guide::message_axes(way);
      Json sheet = Json::array();
      for (std::size_t i = 0; i < axes.size(); ++i)
        sheet.push_back(axes.has_cell(i) ? ns(way, listed, axes.bytes[i / axes.runs.size()], axes.runs[i % axes.runs.size()]) : 0);
      ways[std::string(guide::message_way_name(way))] = sheet;
    }
    made["ns"][listed ? "listed" : "regular"] = ways;
  }
  return made;
}

// Eager is the best below 8 KiB, then wide, and from 1 MiB on a direct copy.
double plain(MessageWay way, bool /*listed*/, std::int64_t bytes, std::int64_t /*run*/) {
  const auto size = static_cast<double>(bytes);
  switch (way) {
    case MessageWay::eager: return 200 + size / 4;
    case MessageWay::wide: return 1200 + size / 8;
    case MessageWay::narrow: return 2000 + size / 8;
    case MessageWay::passed: return 3000 + size / 8;
    case MessageWay::direct: return 40'000 + size / 16;
    case MessageWay::rendezvous: break;
  }
  return 100'000 + size / 2;
}

Json with(const Json& messages, const std::string& machine = guide::machine_name()) {
  Json profile = small();
  profile["machine"] = machine;
  profile["messages"] = messages;
  return profile;
}

class MessageProfiles : public ProfileFile {
 protected:
  [[nodiscard]] MessagePrices prices(const Json& messages) const {
    const base::Result<Profile> profile = read(with(messages));
    EXPECT_TRUE(profile) << profile.error().message;
    return profile ? profile->messages.value_or(MessagePrices()) : MessagePrices();
  }
};

MessageCase message(std::int64_t bytes, std::int64_t run = 1 << 20) {
  return {.piece = {.bytes = bytes, .run = std::min(bytes, run)}, .copies = true};
}

TEST_F(MessageProfiles, AreWhatIsChosenBy) {
  const MessagePrices measured = prices(messages_of(plain));
  EXPECT_TRUE(measured.measured());
  EXPECT_EQ(measured.choose(message(0)), MessageWay::eager);
  EXPECT_EQ(measured.choose(message(4096)), MessageWay::eager);
  EXPECT_EQ(measured.choose(message(8193)), MessageWay::wide);  // more than a small message
  EXPECT_EQ(measured.choose(message(64 << 10)), MessageWay::wide);
  EXPECT_EQ(measured.choose(message(4 << 20)), MessageWay::direct);
  EXPECT_EQ(measured.choose(message(4 << 20, 4 << 10)), MessageWay::direct);
  EXPECT_EQ(measured.choose(message(4 << 20, 4095)), MessageWay::wide);  // short runs
  MessageCase what = message(4 << 20);
  what.copies = false;
  EXPECT_EQ(measured.choose(what), MessageWay::wide);
  what.copies = what.left_behind = what.offered = true;
  EXPECT_EQ(measured.choose(what), MessageWay::wide);
  what = message(4096);
  what.offered = true;
  EXPECT_EQ(measured.choose(what), MessageWay::wide);  // has no channel
  what = message(4096);
  what.eager_bytes = 4000;
  EXPECT_EQ(measured.choose(what), MessageWay::wide);
  what = message(1 << 20);
  what.by_method = true;
  EXPECT_EQ(measured.choose(what), MessageWay::rendezvous);
}

// A channel's lines stay in the caches, whatever a program does between messages.
TEST_F(MessageProfiles, LeaveEagerOnlyForAWindowThatIsMuchFaster) {
  const auto chosen = [&](double share) {
    const auto ns = [&](MessageWay way, bool, std::int64_t, std::int64_t) {
      return way == MessageWay::eager ? 1000 : way == MessageWay::wide ? 1000 * share : 10'000;
    };
    return prices(messages_of(ns)).choose(message(8 << 10));
  };
  EXPECT_EQ(chosen(0.82), MessageWay::eager);
  EXPECT_EQ(chosen(0.78), MessageWay::wide);
  EXPECT_EQ(MessagePrices::usual().choose(message(8 << 10)), MessageWay::eager);
}

TEST_F(MessageProfiles, LeaveAWayOnlyForOneThatIsClearlyFaster) {
  const auto chosen = [&](double share) {
    const auto ns = [&](MessageWay way, bool, std::int64_t, std::int64_t) { return way == MessageWay::narrow ? 1000 * share : 1000; };
    return prices(messages_of(ns)).choose(message(64 << 10));
  };
  EXPECT_EQ(chosen(0.96), MessageWay::wide);
  EXPECT_EQ(chosen(0.94), MessageWay::narrow);
}

// Where CPUs have one cache stores leave the bytes there, elsewhere they pass it by: both as one virtual machine showed
// them within an hour, 16 KiB and 1 MiB in runs of 4 KiB, in ns.
TEST_F(MessageProfiles, OfNearAndOfDistantCpusChooseDifferently) {
  const auto of = [](double wide, double narrow, double passed) {
    return [=](MessageWay way, bool, std::int64_t bytes, std::int64_t) {
      const double size = static_cast<double>(bytes) / 16384;
      return size * (way == MessageWay::wide ? wide : way == MessageWay::narrow ? narrow : way == MessageWay::passed ? passed : 10'000);
    };
  };
  const MessagePrices near = prices(messages_of(of(1413, 2342, 2220))), distant = prices(messages_of(of(8234, 8985, 2844)));
  for (const std::int64_t bytes : {std::int64_t{16} << 10, std::int64_t{1} << 20}) {
    EXPECT_EQ(near.choose(message(bytes, 4096)), MessageWay::wide);
    EXPECT_EQ(distant.choose(message(bytes, 4096)), MessageWay::passed);
  }
}

// Below that no sender has to ask.
TEST_F(MessageProfiles, HaveASizeUpToWhichAllIsEager) {
  support::Random random(9);
  for (int round = 0; round < 40; ++round) {
    const double step = 100.0 * static_cast<double>(random.between(1, 100));
    const auto drawn = [&](MessageWay way, bool, std::int64_t bytes, std::int64_t run) {
      const auto noise = static_cast<double>(random.between(50, 150));
      if (way == MessageWay::eager) return noise + static_cast<double>(bytes) / 3 + static_cast<double>(bytes / run);
      return noise + step + static_cast<double>(bytes) / 10 + static_cast<double>(bytes / run);
    };
    const MessagePrices measured = prices(messages_of(drawn));
    const std::int64_t most = measured.eager_up_to();
    for (int k = 0; k < 300 && most > 0; ++k) {
      MessageCase what = message(1 + random.below(most), 1 + random.scaled(1 << 17));
      what.piece.listed = random.one_in(2);
      what.eager_bytes = 16 << 10;
      ASSERT_EQ(measured.choose(what), MessageWay::eager) << what.piece.bytes << " bytes in runs of " << what.piece.run << " of " << most;
    }
  }
  EXPECT_GE(MessagePrices::usual().eager_up_to(), 2048);
}

TEST_F(MessageProfiles, NeedNotHaveWaysThatTheirMachineHasNot) {
  Json messages = messages_of(plain);
  for (const char* form : {"regular", "listed"}) messages["ns"][form].erase("direct");
  EXPECT_EQ(prices(messages).choose(message(4 << 20)), MessageWay::wide);
}

TEST_F(MessageProfiles, OfAnotherMachineOrWithoutMessagesDoNotHold) {
  const auto found = [&](const Json& profile) {
    write(file(), profile.dump());
    setenv("LACUNA_PROFILE", file().c_str(), 1);
    const Profile read = guide::find_profile("local");
    unsetenv("LACUNA_PROFILE");
    return read.messages.has_value();
  };
  EXPECT_TRUE(found(with(messages_of(plain))));
  EXPECT_FALSE(found(with(messages_of(plain), "another")));
  EXPECT_FALSE(found(small()));
}

// The rest of the profile holds.
TEST_F(MessageProfiles, ThatAreWrongAreLeftOutAndNamed) {
  const auto spoilt = [&](const std::function<void(Json&)>& spoil, std::string_view word) {
    Json messages = messages_of(plain);
    spoil(messages);
    const base::Result<Profile> profile = read(with(messages));
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_FALSE(profile->messages);
    EXPECT_EQ(profile->classes.size(), small()["classes"].size());
    ASSERT_EQ(profile->warnings.size(), 1U);
    for (const std::string& said : {file(), std::string("messages"), std::string(word), std::string("usual times")})
      EXPECT_TRUE(profile->warnings[0].contains(said)) << said << " in: " << profile->warnings[0];
  };
  spoilt([](Json& m) { m["bytes"][0] = 1; }, "bytes");
  spoilt([](Json& m) { m["runs"] = "short"; }, "runs");
  spoilt([](Json& m) { m.erase("ns"); }, "ns");
  spoilt([](Json& m) { m["ns"].erase("listed"); }, "listed");
  spoilt([](Json& m) { m["ns"]["regular"].erase("wide"); }, "wide");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"].erase(3); }, "49 numbers");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][0] = 0; }, "number 0");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][0] = 1e-300; }, "number 0");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][4] = 5; }, "number 4");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][0] = -1; }, "wide");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][0] = 1e300; }, "wide");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"][0] = "fast"; }, "wide");
  spoilt([](Json& m) { m["ns"]["regular"]["wide"] = 3; }, "wide");
  spoilt([](Json& m) { m = 3; }, "messages");
}

// Whatever bytes a file has, it is a profile or an error; and whatever it chooses can be.
TEST_F(MessageProfiles, OfAnyBytesDoNoHarm) {
  const std::string good = with(messages_of(plain)).dump();
  support::Random random(7);
  int held = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    for (int k = 0; k < 2; ++k) text[static_cast<std::size_t>(random.below(std::ssize(text)))] = static_cast<char>('0' + random.below(10));
    if (random.one_in(5)) text.resize(static_cast<std::size_t>(random.below(std::ssize(text))));
    const base::Result<Profile> profile = read(text);
    if (!profile || !profile->messages) continue;
    ++held;
    const MessageCase what{.piece = {.bytes = random.scaled(1 << 24), .run = 1 + random.scaled(1 << 20), .listed = random.one_in(2)},
                           .eager_bytes = random.scaled(16 << 10),
                           .copies = random.one_in(2)};
    const MessageWay chosen = profile->messages->choose(what);
    EXPECT_EQ(guide::message_way_refusal(chosen, what), "");
    if (what.piece.bytes == 0) continue;
    EXPECT_TRUE(std::isfinite(profile->messages->ns(chosen, what.piece)));
  }
  EXPECT_GT(held, 20);
}

TEST(MessageWays, HaveNamesAndUsualTimes) {
  for (const MessageWay way : kEvery) {
    EXPECT_EQ(support::value(guide::message_way_from_name(guide::message_way_name(way))), way);
    for (const bool listed : {false, true}) {
      for (const std::int64_t bytes : {1, 512, 5000, 1 << 24})
        EXPECT_GT(MessagePrices::usual().ns(way, {.bytes = bytes, .run = 8, .listed = listed}), 50);
    }
  }
  EXPECT_FALSE(MessagePrices::usual().measured());
  const auto wrong = guide::message_way_from_name("pigeon");
  ASSERT_FALSE(wrong);
  for (const MessageWay way : kEvery) EXPECT_TRUE(wrong.error().message.contains(guide::message_way_name(way)));
}

// As it was before it was measured: small messages are eager, and long ones go through windows in turn.
TEST(MessageWays, AreEagerThenWideByUsualTimes) {
  for (const std::int64_t run : {8, 64, 4096, 1 << 20}) {
    for (const std::int64_t bytes : {8, 512, 1024, 2048}) EXPECT_EQ(MessagePrices::usual().choose(message(bytes, run)), MessageWay::eager);
    for (const std::int64_t bytes : {16 << 10, 64 << 10, 1 << 20, 16 << 20})
      EXPECT_EQ(MessagePrices::usual().choose(message(bytes, run)), MessageWay::wide) << bytes << " in runs of " << run;
  }
}

TEST(MessageWays, AreForcedByTheEnvironment) {
  setenv("LACUNA_WAY", "narrow", 1);
  EXPECT_EQ(support::value(guide::message_way_of_environment()), MessageWay::narrow);
  setenv("LACUNA_WAY", "", 1);
  EXPECT_EQ(support::value(guide::message_way_of_environment()), std::nullopt);
  setenv("LACUNA_WAY", "carrier", 1);
  const auto wrong = guide::message_way_of_environment();
  unsetenv("LACUNA_WAY");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("LACUNA_WAY: ")) << wrong.error().message;
  EXPECT_TRUE(wrong.error().message.contains("rendezvous"));
  EXPECT_EQ(support::value(guide::message_way_of_environment()), std::nullopt);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
