// guide: what each method would cost here, which is best, and why. It hides fitted prices. What they are fitted to,
// tools/measure measures.
//
//   lacuna guide ── measures (lacuna-worker) ──▶ rows ── fit (Python) ──▶ profile: prices of each path
//                                                                         │
//   layouts ── outline ──▶ cost items of each method × path ─ prices ─▶ time of each, in stages ─▶ Choice, Explanation
//                                                                                                    │
//                          both ends must do the same: one end chooses and tells the other ◀─────────┘
//
// A wrong profile makes a transfer slow, never wrong: every choice is one that both ends can carry out.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/guide/exchange_prices.hpp"
#include "lacuna/guide/message_ways.hpp"
#include "lacuna/layout/layout.hpp"
#include "lacuna/method/method.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::guide {

using base::Result;
using layout::Layout;

/// A way to do it.
struct Way {
  const method::Method* method = nullptr;
  nic::Path path{};
  method::Notify notify{};
  bool operator==(const Way&) const = default;

  /// Three bytes for the peer, which has to do its half of the same.
  static constexpr std::size_t kBytes = 3;
  [[nodiscard]] std::array<std::byte, kBytes> encode() const;
  /// For bytes from anywhere. Errors: malformed.
  static Result<Way> decode(std::span<const std::byte> wire);
};

// --- pairs that were measured ----------------------------------------------------------------------------------------

/// A pair in a profile, as numbers: of either side bytes, runs, span, stride, listed, uneven; then pieces and paired.
inline constexpr std::size_t kPairNumbers = 14;
[[nodiscard]] std::array<double, kPairNumbers> numbers_of(const layout::PairOutline& pair);
/// Errors: invalid_argument (what is wrong is named).
Result<layout::PairOutline> pair_from_numbers(std::span<const double> numbers);

/// Of some ways: the logarithm of measured over expected time, as a mean over the measured pairs, each weighted by how
/// near it is (a Gaussian kernel in the logarithms of the payload and of both sides' runs, and whether a side is
/// contiguous, listed or uneven).
class Nearby {
 public:
  /// No mean is further from 0, as no bias is: what was measured may be long gone.
  static constexpr float kMost = std::numbers::ln2_v<float>;  // a factor of 2
  /// A mean over pairs that are far, or few, is nearly none: so many near pairs say that there is no gap. Tried on 1000
  /// random pairs, judged on 500 others (docs/notes/choosing.md): 0.05 to 0.2 make no difference, 1 is worse.
  static constexpr float kPriorWeight = 0.05F;
  static constexpr std::size_t kCoordinates = 9;
  using Point = std::array<float, kCoordinates>;  // the payload's first: they are sorted by it
  /// Where a pair is. Another's weight is exp(-d*d/2) at distance d.
  [[nodiscard]] static Point place_of(const layout::PairOutline& pair);

  explicit Nearby(std::size_t ways = 0) : ways_(ways) {}
  /// A gap for each way, NaN where it was not measured. `learned`: by a program that moved just this pair again and
  /// again: it counts for many, but holds for hardly any other; of the same ways of the same pair the last is kept.
  void add(const layout::PairOutline& pair, bool cold, std::span<const float> gaps, bool learned = false);
  /// By way, of as many as it holds: a mean, 0 where no near pair was measured; and the weight of all that it is a mean
  /// of.
  struct Means {
    std::array<float, 256> gaps{};
    std::array<float, 256> weights{};
  };
  [[nodiscard]] Means means(const layout::PairOutline& pair, bool cold) const;

 private:
  struct MeasuredPair {
    Point place{};
    bool cold = false;
    bool learned = false;
    std::vector<float> gaps;   // 0 where it was not measured,
    std::vector<float> known;  // and this too, else 1
  };
  std::size_t ways_;
  std::vector<MeasuredPair> seen_;
};

// --- profiles --------------------------------------------------------------------------------------------------------

/// What the cost items of a way do not know, as measurements show it: the logarithm of measured over expected time, as
/// a sum over bias_features() of a pair.
inline constexpr std::size_t kBiasFeatures = 8;
using Bias = std::array<double, kBiasFeatures>;
[[nodiscard]] Bias bias_features(const layout::PairOutline& pair, bool cold);
/// The factor on a expected time; never more than kMostBias, nor less than its inverse: a profile may be wrong, and
/// layouts may be far from what was measured.
[[nodiscard]] double bias_factor(const Bias& bias, const Bias& features);
inline constexpr double kMostBias = 1.65;

/// What programs found out while they ran: of two ways to move a pair, how long the second takes beside the first.
struct Learned {
  layout::PairOutline pair;
  bool cold = false;
  double message_us = 0;  ///< of the class of peers, as in a profile
  Way first, second;
  double log_ratio = 0;  ///< logarithm of the second's time over the first's, a mean over
  int samples = 0;       ///< pairs of transfers
  /// Of the same pair, peers and ways, whichever is called first.
  [[nodiscard]] bool same(const Learned& other) const;
};

/// What a machine's paths ask for what a transfer does, as it was fitted to measurements.
struct Profile {
  struct Path {
    nic::Path path{};
    method::Prices prices{};
    std::vector<std::array<Bias, 3>> biases;  ///< of each method of the table, with each notification; empty for none
    /// Of predicted against measured, as a fraction; 0 where nothing was measured
    double error_median = 0;
    double error_p90 = 0;
    int rows = 0;  ///< measurements that it was fitted to
  };
  /// Peers alike. Two processes of one machine are near one another or far apart, as the scheduler places them: a
  /// message of 16 KiB tells.
  struct Class {
    double message_us = 0;  ///< it took so long, one way; 0 where that was not measured
    std::vector<Path> paths;
    /// A pair that was measured.
    struct MeasuredPair {
      layout::PairOutline pair;
      bool cold = false;
      std::vector<double> us;  ///< by each of `ways`; 0 where it was not measured
    };
    std::vector<Way> ways;
    std::vector<MeasuredPair> seen;
    static constexpr std::size_t kMostSeen = 4096;
    [[nodiscard]] const Path* path(nic::Path which) const;
  };
  std::string nic;      ///< as nic_label() names it
  std::string peers;    ///< "same machine", "another machine"
  std::string machine;  ///< machine_name() of where it was measured; empty for the built-in one
  std::string version;  ///< of the library that measured
  std::string created;  ///< when, in UTC
  std::string file;     ///< where it was read; empty for the built-in one
  std::vector<Class> classes;
  std::optional<MessagePrices> messages;    ///< of ranks that share memory, where this machine's were measured
  std::optional<ExchangePrices> exchanges;  ///< where this machine's were measured
  std::vector<Learned> learned;             ///< by programs
  std::vector<std::string> warnings;        ///< from elsewhere, from an older library, not there

  /// The class whose messages take most nearly so long; the first if `message_us` is 0. Null if there is none, or if
  /// all are so far from it that they say nothing (a factor of kSameClass).
  static constexpr double kSameClass = 1.8;
  /// Whether two such times are of one class; 0 is of any.
  [[nodiscard]] static bool same_class(double message_us, double other_us);
  [[nodiscard]] const Class* of(double message_us) const;
  /// How many times as long as usual in a class transfers take while its message takes `message_us`: peers of a class
  /// are alike by ratio, and the clock and what the neighbours do slow all ways together. By the ratio to the power
  /// 0.7, fitted to random pairs of a machine whose message took from 2.7 to 3.8 µs in one class
  /// (docs/design/choosing.md). 1 where either is 0, not known.
  [[nodiscard]] static double speed_factor(double message_us, double class_us);
};

/// Prices that are sensible where nothing was measured. `message_us`: as for Profile::of(); 0 where nobody knows.
/// `mover`: who carries what goes by path wire, a device or the CPUs of both ends.
[[nodiscard]] const method::Prices& usual_prices(nic::Path path, double message_us = 0, nic::Mover mover = nic::Mover::device);
/// A profile of a NIC that nobody has measured.
[[nodiscard]] Profile usual_profile(const std::string& nic);
/// The machine that this runs on, in a few words: a profile from another one is no good here.
[[nodiscard]] std::string machine_name();

/// Where this machine's profiles are, below $XDG_CONFIG_HOME/lacuna (~/.config/lacuna); or those of simulated NICs.
[[nodiscard]] std::string profiles_folder(bool simulated = false);
/// Where the profile of a NIC is: LACUNA_PROFILE if set, else in profiles_folder().
[[nodiscard]] std::string profile_file(const std::string& nic);
/// Errors: invalid_argument (not a profile; what is wrong is named), io.
Result<Profile> read_profile(const std::string& file);
/// The profile of a NIC: the file's if there is one that can be read, else the usual one; what is doubtful is among its
/// warnings.
[[nodiscard]] Profile find_profile(const std::string& nic);

/// What programs learn is kept beside the profile that `lacuna guide` wrote: "local.learned.json" beside "local.json".
[[nodiscard]] std::string learned_file(const std::string& profile);
/// Errors: invalid_argument (not such a file; what is wrong is named), io. What was learned on another machine is left
/// out.
Result<std::vector<Learned>> read_learned(const std::string& file);
/// Adds to a file, or begins one. Processes that do so at the same time wait for one another; a reader sees all of
/// one state of it. Of what is the same, the mean is kept. Errors: io (the folder cannot be written), timeout (others
/// hold the file for a minute).
Result<void> merge_learned(const std::string& file, std::span<const Learned> learned);
inline constexpr std::size_t kMostLearned = 512;  // in a file; those with most samples

/// The limits of a NIC as `lacuna guide --nic` names it: "local", "model", "model:PROFILE". Errors: those of
/// nic::open() and nic::simulate().
Result<nic::Limits> limits_of(const std::string& nic);
/// "model:PROFILE", or "model" for the platform of the paper (docs/reference/papers.md): the simulated platform's file;
/// nothing for a real NIC.
[[nodiscard]] std::optional<std::string> simulated_platform(const std::string& nic);
/// The same name for the same NIC: "local", "model:connectx5-rocev2".
[[nodiscard]] std::string nic_label(const std::string& nic);

// --- choosing --------------------------------------------------------------------------------------------------------

/// What is to be small.
enum class Objective : std::uint8_t {
  latency,    ///< of one transfer
  bandwidth,  ///< the time that the busiest part needs for one of many transfers
  cpu,        ///< CPU time of both ends together
};
[[nodiscard]] std::string_view objective_name(Objective objective);
[[nodiscard]] std::optional<Objective> objective_from_name(std::string_view name);

/// Where the data lies, and what the transfer is for.
struct Placement {
  bool src_shared = true;  ///< is the source's region one that paths reach which are shared_only? (Region::shared())
  bool dst_shared = true;
  bool cold = false;  ///< neither side's bytes are in a cache
  bool told = true;   ///< must the passive end of a one-sided method learn that it is over?
  float uses = 0;     ///< transfers for which a binding of indirect keys holds; 0: so many that it costs nothing
  Objective objective = Objective::latency;
  bool operator==(const Placement&) const = default;
};

/// What is expected of it, in nanoseconds.
struct ExpectedCost {
  double latency_ns = 0;
  double cpu_ns[2] = {0, 0};  ///< of the sender, of the receiver
  double busiest_ns = 0;
  /// What is to be small.
  [[nodiscard]] double merit(Objective objective) const;
};

struct Choice {
  Way way;
  ExpectedCost plan;
};

/// One of all the ways, and what became of it.
struct Candidate {
  Way way;
  std::string refusal;  ///< why it cannot be; empty if it can
  ExpectedCost plan;
  std::array<double, method::kStages> stages_ns{};  ///< sum: plan.latency_ns
  double factor = 1;                                ///< the factor that is in them
  double measured_us = 0;                           ///< 0: it was not
  std::string crossover;                            ///< where it would win, in words; empty for the one that does
};

struct Explanation {
  /// The chosen one, those that could be by what is expected of them, those that cannot
  std::vector<Candidate> candidates;
  std::optional<Way> usual;  ///< best by the usual prices, where that counts (PeerClass::hysteresis())
  Placement placement;
  const Profile* profile = nullptr;
  layout::PairOutline pair;
};

/// Forces, as a user sets them.
struct Force {
  const method::Method* method = nullptr;
  std::optional<nic::Path> path;
  /// LACUNA_METHOD and LACUNA_PATH. Errors: invalid_argument (no such method or path; the message lists them).
  static Result<Force> from_environment();
};

/// Peers that are reached alike: what the NIC can do with them, and what it costs. A Guide makes it.
class PeerClass {
 public:
  PeerClass(nic::Limits limits, Profile profile, double message_us, std::uint64_t number);
  [[nodiscard]] const nic::Limits& limits() const { return limits_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }
  struct Route {
    nic::PathInfo info;
    method::Prices prices;
    method::Prices usual;
    std::vector<std::array<Bias, 3>> biases;
  };
  [[nodiscard]] std::span<const Route> routes() const { return routes_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Of the class of the profile that holds for them; 0 where there is none.
  [[nodiscard]] double message_us() const { return message_us_; }
  /// Profile::speed_factor() of these peers when they were added. All that is expected of them is so many times as
  /// long; what is chosen is the same.
  [[nodiscard]] double speed_factor() const { return speed_factor_; }
  /// Far from all pairs that were measured, a profile is no surer guide than the usual prices: what is best by these is
  /// left only for a way that it takes 1 + hysteresis times as long as. Of latencies alone: of nothing else are errors
  /// known. 0 where nothing was measured.
  [[nodiscard]] double hysteresis() const { return hysteresis_; }
  /// Of a profile whose expectations err by so much in the median. The bound is one of those that cost no time on the
  /// machine where they were tried, and not the largest, since the usual prices may suit another less
  /// (docs/notes/choosing.md); a profile that errs by a tenth, as those of `local` do, has it.
  [[nodiscard]] static double hysteresis_of(double error_median) { return std::min(kMostHysteresis, 1.5 * error_median); }
  static constexpr double kMostHysteresis = 0.15;

  /// What measurements say of a pair beside the cost items of its ways.
  class Posterior {
   public:
    Posterior(const PeerClass& peer, const layout::PairOutline& pair, bool cold);
    /// What a way's expected time is multiplied by, and by the peers' speed factor; never more than kMost.
    [[nodiscard]] double factor(const Route& route, const Way& way) const;
    static constexpr double kMost = kMostBias * 2;
    /// What a way's latency counts as, where another one is usually best: more by the hysteresis, which is half beside
    /// one pair of which the way was measured, a tenth beside nine, and nearly nothing where a program found out what
    /// it takes.
    [[nodiscard]] double hysteresis(const Route& route, const Way& way, const std::optional<Way>& usual) const;

   private:
    friend class PeerClass;
    const PeerClass& peer_;
    Bias features_;
    Nearby::Means means_;
  };

 private:
  friend class Guide;
  [[nodiscard]] std::size_t index(const Route& route, const Way& way) const;
  [[nodiscard]] const Route* route(nic::Path path) const;
  void remember(const Profile::Class& measured);
  void remember(const Learned& learned);

  nic::Limits limits_;
  Profile profile_;
  double message_us_ = 0;
  double speed_factor_ = 1;
  double hysteresis_ = 0;
  std::vector<Route> routes_;
  std::uint64_t number_;
  Nearby nearby_;
};

/// Chooses, and remembers what it chose: by the two digests, the placement and the peers. Belongs to one thread at a
/// time, as a nic::Context does.
class Guide {
 public:
  explicit Guide(Force force = {}) : force_(force), kept_(kKept) {}

  /// Peers to choose for; the reference holds as long as the Guide. `profile`: find_profile(). `message_us`: what a
  /// message of 16 KiB takes to them, if it is known: so the class is found.
  const PeerClass& add(nic::Limits limits, Profile profile, double message_us = 0) {
    return peers_.emplace_back(std::move(limits), std::move(profile), message_us, peers_.size() + 1);
  }
  /// The best way by the peers' prices, unless what is best by the usual ones is within the hysteresis of it
  /// (Posterior::hysteresis()). Errors: invalid_argument (sizes differ); unsupported (nothing can move it, or not what
  /// is forced; the message says why each cannot).
  Result<Choice> choose(const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement = {});
  /// The best but for `others`, whatever is usual. Not remembered. Errors: as choose().
  [[nodiscard]] Result<Choice> choose_beside(std::span<const Way> others, const Layout& src, const Layout& dst, const PeerClass& peer,
                                             const Placement& placement) const;
  /// From now on choices for this pair, and any that are nearly alike, follow what was learned.
  void learn(const PeerClass& peer, const Learned& learned);
  /// What was chosen so far.
  void forget() { kept_.assign(kKept, {}); }
  /// All ways. Errors: as choose().
  [[nodiscard]] Result<Explanation> explain(const Layout& src, const Layout& dst, const PeerClass& peer,
                                            const Placement& placement = {}) const;
  /// One way's expectation, whether it can be or not.
  [[nodiscard]] static ExpectedCost expect(const Way& way, const layout::PairOutline& pair, const PeerClass& peer,
                                           const Placement& placement = {});
  [[nodiscard]] static ExpectedCost expect(const Way& way, const layout::PairOutline& pair, const PeerClass& peer,
                                           const Placement& placement, const PeerClass::Posterior& posterior);
  /// Of it, the CPU times of the sender and of the receiver, which go by the cost items alone.
  [[nodiscard]] static std::array<double, 2> cpu_ns(const Way& way, const layout::PairOutline& pair, const PeerClass& peer,
                                                    const Placement& placement);

 private:
  static constexpr std::size_t kKept = 4096;  // a power of two; 100 bytes each
  struct Key {
    layout::Digest src, dst;
    std::uint64_t rest = 0;  // peers and placement; 0: nothing is kept here
    bool operator==(const Key&) const = default;
  };
  struct Kept {
    Key key;
    Choice choice;
  };
  static void find_crossovers(Explanation& explanation, const PeerClass& peer);
  struct Found {
    Choice choice;
    std::optional<Way> usual;
  };
  // The best but for `others`; `hysteresis`: or what is usual, if it is nearly as good.
  [[nodiscard]] Result<Found> search(const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement,
                                     std::span<const Way> others = {}, bool hysteresis = true) const;

  Force force_;
  std::deque<PeerClass> peers_;
  std::vector<Kept> kept_;
};

// --- learning --------------------------------------------------------------------------------------------------------

/// What a program does to learn while it runs.
enum class Learning : std::uint8_t {
  off,
  observe,  ///< tries the best way beside it now and then, and tells what it took; chooses as ever
  on,       ///< also corrects its choices, and keeps what it learned for others
};

struct LearnOptions {
  Learning learning = Learning::off;
  int one_in = 100;  ///< transfers, of which one goes another way
  /// No trial begins while what they have cost, and this one is expected to, is more than this share of the time of all
  /// transfers.
  static constexpr double kMostOverhead = 0.005;
  /// "off", "observe", "on", "on:1000" (one in 1000). Errors: invalid_argument (the message lists what there is).
  static Result<LearnOptions> from_text(std::string_view text);
  /// LACUNA_LEARN. Errors: as from_text().
  static Result<LearnOptions> from_environment();
};

// --- saying why ------------------------------------------------------------------------------------------------------

/// A layout in words: runs, extent, canonical form, kernels, histogram of its runs' lengths. Lines of text.
[[nodiscard]] std::string describe(const Layout& layout);
/// An explanation in words: every way with its stages, why it lost and where it would win. Lines of text.
[[nodiscard]] std::string describe(const Explanation& explanation);

}  // namespace lacuna::guide
