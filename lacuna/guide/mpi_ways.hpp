// mpi_ways: in which ways data with gaps can travel between two ranks of a node of an MPI program, what each way is
// expected to take there, and which is chosen. The interposer asks before each message and each collective; `lacuna
// explain` asks the same. It hides where the times come from.
//
//   lacuna guide --mpi ── measures each way ──▶ sheets: ns by bytes and run ── interpolated ──▶ the least: the choice
//                                                 ▲
//                    usual_mpi/*/*.inc: the same, measured once, for machines that have no profile
//
// Each twice: between CPUs that are near one another, and between distant ones.
//
//   programs that learn (mpi_learner.hpp) ── which of two ways was faster for a piece ──▶ overrules what is expected
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"
#include "lacuna/guide/sheet.hpp"

namespace lacuna::guide {

/// The MPIs whose ways differ.
enum class MpiLibrary : std::uint8_t { open_mpi, mpich, mpich_4_0, intel };
inline constexpr std::size_t kMpiLibraries = 4;
/// "open_mpi", "mpich", "mpich_4_0", "intel".
[[nodiscard]] std::string_view mpi_library_name(MpiLibrary library);
[[nodiscard]] std::optional<MpiLibrary> mpi_library_from_name(std::string_view name);

/// The CPUs of which there are usual times. zen5: an EPYC of AMD's family 26, for later families, too. zen4: an EPYC of
/// 2022, for all other CPUs, too.
enum class UsualCpu : std::uint8_t { zen4, zen5 };
[[nodiscard]] UsualCpu usual_cpu(const base::CpuKind& kind = base::cpu_kind());

/// How far the CPUs of two ranks are from one another. Which way is best depends on that: what takes a message from one
/// cache to another takes three times as long between distant CPUs, and what works in a CPU's own cache does not.
enum class Distance : std::uint8_t { near, distant };
inline constexpr std::size_t kDistances = 2;
/// "near", "distant".
[[nodiscard]] std::string_view distance_name(Distance distance);
[[nodiscard]] std::optional<Distance> distance_from_name(std::string_view name);
/// By what it takes to read a cache line that the other CPU has written. `before`: what it was, which a time near the
/// bound leaves as it is; nothing: it was not known.
[[nodiscard]] Distance distance_of(double line_ns, std::optional<Distance> before = std::nullopt);

/// What the data is for.
enum class MpiUse : std::uint8_t {
  send,   ///< MPI_Send and MPI_Recv
  later,  ///< MPI_Isend and MPI_Irecv, ended by MPI_Waitall
  alltoall,
  alltoallv,
  alltoallw,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  bcast,
  neighbor,  ///< MPI_Neighbor_alltoall and its like
};
inline constexpr std::size_t kMpiUses = 13;
/// Bytes that a rank's boards have at most, memory by which collectives of a node go, of one that shares so many with
/// the others besides. An eighth: of 16 MiB, the least of a rank, that is two boards of communicators.
constexpr std::int64_t mpi_board_bytes(std::int64_t shared_bytes) { return shared_bytes / 8; }
[[nodiscard]] std::string_view mpi_use_name(MpiUse use);
[[nodiscard]] std::optional<MpiUse> mpi_use_from_name(std::string_view name);

/// A way to move it. One line in mpi_ways.cpp says of each its name, and for which uses it is there.
enum class MpiWay : std::uint8_t {
  host,     ///< the program's call as it is, with its datatype
  packed,   ///< packed by Lacuna, moved by the host as bytes, unpacked by Lacuna
  offered,  ///< moved by Lacuna through memory that both ranks reach, a descriptor in its place
};
inline constexpr std::size_t kMpiWays = 3;
[[nodiscard]] std::string_view mpi_way_name(MpiWay way);
[[nodiscard]] std::optional<MpiWay> mpi_way_from_name(std::string_view name);
/// Whether data of that use can go that way.
[[nodiscard]] bool mpi_way_serves(MpiWay way, MpiUse use);
/// What LACUNA_MPI_WAY (`way`), or without it LACUNA_MPI_OFFER (`offered_from`, bytes), makes of data with gaps: the
/// former takes the host's way where there is no such way, the latter packs what is shorter, and leaves nothing to it.
[[nodiscard]] MpiWay forced_mpi_way(std::optional<MpiWay> way, std::int64_t offered_from, MpiUse use, std::int64_t bytes);

/// From how many bytes on an MPI's other ways are gone. `lacuna guide --mpi` measures the first, and with `--hosts` the
/// others; where nothing was measured, the usual ones hold.
struct MpiThresholds {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t contiguous = 4 << 20;   ///< of a message without gaps that is offered
  std::int64_t inter_node = 64 << 10;  ///< of a message with gaps that goes to another node in chunks
  std::int64_t chunk = 60 << 10;       ///< of each of these
};
[[nodiscard]] MpiThresholds usual_thresholds(MpiLibrary library);

/// Where the times were measured. A run of half a piece at most is measured: others have no cell.
inline constexpr std::array<std::int64_t, 8> kMpiBytes{256, 1024, 3072, 4096, 16384, 65536, 262144, 1048576};
inline constexpr std::array<std::int64_t, 5> kMpiRuns{8, 64, 512, 4096, 32768};
inline constexpr Axes kMpiAxes{.bytes = kMpiBytes, .runs = kMpiRuns, .fewest_runs = 2};
static_assert(kMpiAxes.size() <= Sheet::kMostCells);

/// What programs found out while they ran: of two ways of a piece, how long the program took from one such transfer to
/// the next, by the second way beside the first.
struct MpiLearned {
  std::string version;  ///< of the MPI, as MpiPrices::find() is told
  Distance distance{};
  MpiUse use{};
  Piece piece;
  MpiWay first{}, second{};
  double log_ratio = 0;  ///< logarithm of the second's time over the first's, a mean over
  int samples = 0;       ///< pairs of transfers
  /// Of the same MPI, distance, use, piece and ways, whichever is called first.
  [[nodiscard]] bool same(const MpiLearned& other) const;
};
/// Beside a profile (learned_file() in guide.hpp), as read_learned() and merge_learned() do it.
base::Result<std::vector<MpiLearned>> read_mpi_learned(const std::string& file);
base::Result<void> merge_mpi_learned(const std::string& file, std::span<const MpiLearned> learned);

/// The times of one MPI on one machine, between CPUs that are so far from one another.
class MpiPrices {
 public:
  /// Where nothing was measured.
  static const MpiPrices& usual(MpiLibrary library, Distance distance, UsualCpu cpu = usual_cpu());
  /// Of `lacuna guide --mpi`. Errors: io; invalid_argument (not such a file, or another library's; what is wrong is
  /// named).
  static base::Result<MpiPrices> read(const std::string& file, MpiLibrary library);
  /// Those of file_of(), if it was measured on this machine; else the usual ones, and a warning() if there is such a
  /// file.
  /// `version`: the first line of MPI_Get_library_version, of which alone they hold; empty: of any.
  static MpiPrices find(MpiLibrary library, Distance distance, std::string_view version = {});
  /// mpi-LIBRARY.json in profiles_folder(), between distant CPUs mpi-LIBRARY-distant.json; LACUNA_MPI_PROFILE names
  /// another file, which holds for all.
  [[nodiscard]] static std::string file_of(MpiLibrary library, Distance distance);
  /// Where what programs learned is, of all distances.
  [[nodiscard]] static std::string learned_file_of(MpiLibrary library);

  /// Expected nanoseconds; nothing: the way does not serve that use.
  [[nodiscard]] std::optional<double> ns(MpiUse use, MpiWay way, const Piece& piece) const;
  /// The best of those ways whose bits are set. The host's is left only for a way that is expected to take less than
  /// kGain of it: what is expected errs by some percent, and a program may not be slower than without. A short message
  /// leaves it for shared memory only for less than usual::kWindowGain of that, between near CPUs: 4 KiB in blocks of
  /// 128 B, between other work, took 1.12 us by Open MPI and 1.3 offered, which one after the other take 1.1 and 0.9.
  /// Between distant CPUs 4 KiB in 16 runs took 2.6 us by Open MPI and 1.5 to 1.8 offered, between other work as well.
  /// What was learned of nearly the same piece overrules all that.
  [[nodiscard]] MpiWay choose(MpiUse use, const Piece& piece, unsigned ways = ~0U) const;
  /// The way of least expected time but for these, of those whose bits are set.
  [[nodiscard]] std::optional<MpiWay> best_beside(std::span<const MpiWay> others, MpiUse use, const Piece& piece, unsigned ways) const;
  static constexpr double kGain = 0.95;
  /// The same where nothing was measured on this machine. Of 750 rows of random types with MPICH on an EPYC of Zen 3,
  /// usual times with 0.95 chose a way for collectives that took more than 1.05 of the host's time in 47, with 0.85 in
  /// 39; of 430 with Open MPI in 30 and 23. Of messages 480 B with Open MPI took 1.14 by 0.95.
  static constexpr double kUsualGain = 0.85;
  /// But for messages of so many bytes that are packed, which the MPI moves either way: another machine changes both
  /// alike. What differs is the MPI's own packing, which of nested types takes longer than of the vectors that were
  /// measured: 12 KiB in 16 runs took 4.2 us by Intel MPI's own way and 0.85 packed, where the sheet has 1.5 and 1.3.
  static constexpr std::int64_t kPackedAlike = 4096;
  /// What is shorter goes the host's way: nothing is measured of it, and a call costs more than the bytes.
  static constexpr std::int64_t kLeastBytes = kMpiBytes.front();

  /// Ranks share CPUs: blocks that are offered to all, and wait for all, have to be expected to take less by
  /// kSharedCpus. Between two ranks of Intel MPI 32 KiB for each took as long packed as offered (0.85 to 1.2), between
  /// four on two CPUs, which were distant, 1.5 times as long offered.
  void share_cpus() { shares_cpus_ = true; }
  static constexpr double kSharedCpus = 1.5;

  [[nodiscard]] const MpiThresholds& thresholds() const { return thresholds_; }

  /// From now on choices follow it.
  void learn(const MpiLearned& learned);
  [[nodiscard]] std::span<const MpiLearned> learned() const { return learned_; }

  [[nodiscard]] Distance distance() const { return distance_; }
  [[nodiscard]] const std::string& machine() const { return machine_; }  ///< empty: usual prices
  [[nodiscard]] const std::string& file() const { return file_; }        ///< empty: usual prices
  [[nodiscard]] const std::string& warning() const { return warning_; }  ///< why a file does not hold; or empty

 private:
  friend struct MpiProfile;                 // reads them
  static constexpr std::size_t kForms = 2;  // regular, listed
  static MpiPrices make_usual(MpiLibrary library, Distance distance, UsualCpu cpu);
  static MpiPrices of_file(MpiLibrary library, Distance distance, std::string_view version);
  [[nodiscard]] MpiWay expect_best(MpiUse use, const Piece& piece, unsigned ways) const;
  // Of the host's time that the way may take, so that it is chosen.
  [[nodiscard]] double gain_of(MpiUse use, MpiWay way, const Piece& piece) const;
  [[nodiscard]] bool is_faster(MpiUse use, const Piece& piece, MpiWay way, MpiWay than) const;
  std::array<std::array<std::array<Sheet, kMpiWays>, kForms>, kMpiUses> sheets_{};
  MpiThresholds thresholds_;
  Distance distance_ = Distance::near;
  std::string machine_, version_, file_, warning_;
  std::vector<MpiLearned> learned_;
  bool shares_cpus_ = false;
};

}  // namespace lacuna::guide
