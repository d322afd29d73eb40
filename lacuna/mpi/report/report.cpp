#include "lacuna/mpi/report/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>

namespace lacuna::mpi {
namespace {

constexpr std::int64_t kBetweenSamples = 128;

const char* name_of(MessageReport::Way way) {
  switch (way) {
    case MessageReport::Way::packed: return "packed here, sent by the host";
    case MessageReport::Way::offered: return "offered";
    case MessageReport::Way::offered_directly: return "offered, copied directly";
    case MessageReport::Way::accepted: return "accepted";
    case MessageReport::Way::accepted_directly: return "accepted, copied directly";
    case MessageReport::Way::unpacked: return "received by the host, unpacked here";
    case MessageReport::Way::chunked_out: return "sent in chunks";
    case MessageReport::Way::chunked_in: return "received in chunks";
    case MessageReport::Way::read_out: return "left for a device to read";
    case MessageReport::Way::read_in: return "read by a device";
    case MessageReport::Way::pack: return "MPI_Pack";
    case MessageReport::Way::unpack: return "MPI_Unpack";
    case MessageReport::Way::collected_out: return "packed here for a collective";
    case MessageReport::Way::collected_in: return "unpacked here from a collective";
    case MessageReport::Way::exchanged_out: return "offered in a collective";
    case MessageReport::Way::exchanged_in: return "accepted in a collective";
    case MessageReport::Way::put: return "packed here for MPI_Put";
    case MessageReport::Way::got: return "unpacked here from MPI_Get";
  }
  return "";
}

// Another way is named where it was expected to take less than nine tenths of what this one took.
std::string expectation_of(const MessageReport::Expected& expected, double measured_ns) {
  if (expected.ns <= 0) return "";
  std::string text = fmt::format(", {:.2f} expected", expected.ns / 1e3);
  const bool better = !expected.best.empty() && expected.best_ns < 0.9 * measured_ns;
  if (better) text += fmt::format(" (LACUNA_MPI_WAY={} is expected to take {:.2f})", expected.best, expected.best_ns / 1e3);
  return text;
}

}  // namespace

MessageReport::MessageReport() {
  const char* said = std::getenv("LACUNA_MPI_REPORT");
  on_ = said != nullptr && *said != '\0' && std::string_view(said) != "0";
}

void MessageReport::count(Way way, const Type* type, Count elements, int peer, std::int64_t bytes, std::int64_t ns,
                          const Expected& expected) try {
  const std::scoped_lock lock(mutex_);
  ReportLine& line = lines_[{way, type->layout().digest(), elements, peer}];
  if (line.messages++ == 0) {
    line.way = way;
    line.form = type->layout().describe();
    line.expected = expected;
  }
  line.bytes += bytes;
  line.ns += ns;
} catch (const std::bad_alloc&) {
  lost_ = true;
}

bool MessageReport::samples(const Type* type, Count elements, int peer, Way way) {
  const std::scoped_lock lock(mutex_);
  const auto line = lines_.find({way, type->layout().digest(), elements, peer});
  return line != lines_.end() && line->second.messages % kBetweenSamples == 1;
}

void MessageReport::sampled(const Type* type, Count elements, int peer, Way way, std::int64_t ns) try {
  const std::scoped_lock lock(mutex_);
  ReportLine& line = lines_[{way, type->layout().digest(), elements, peer}];
  ++line.samples;
  line.sampled_ns += ns;
} catch (const std::bad_alloc&) {
  lost_ = true;
}

void MessageReport::print(int world_rank, const std::string& learning, const SharedUse& shared) {
  if (!on_) return;
  const std::scoped_lock lock(mutex_);
  const std::string tool = tool_behind(Passed::functions());
  std::string text = fmt::format("lacuna: rank {}", world_rank);
  if (!tool.empty()) text += fmt::format("; {} is loaded behind Lacuna and does not see its calls: name it first in LD_PRELOAD", tool);
  text += '\n';
  for (const auto& [key, line] : lines_) {
    const auto& [way, digest, elements, peer] = key;
    text += fmt::format("  {} x [{}]", elements, line.form);
    if (peer >= 0) text += fmt::format("  with rank {}", peer);
    text += fmt::format(": {}, {} times, {} bytes, {:.2f} us each", name_of(line.way), line.messages, line.bytes,
                        static_cast<double>(line.ns) / 1e3 / static_cast<double>(line.messages));
    text += expectation_of(line.expected, static_cast<double>(line.ns) / static_cast<double>(line.messages));
    if (line.samples > 0)
      text += fmt::format("; the host packs it in {:.2f} us ({} samples)",
                          static_cast<double>(line.sampled_ns) / 1e3 / static_cast<double>(line.samples), line.samples);
    text += '\n';
  }
  text += passed.text();
  if (!learning.empty()) text += fmt::format("  {}\n", learning);
  if (shared.refused > 0)
    text += fmt::format("  {} messages found no room in the memory that this rank shares (LACUNA_SHARED_BYTES)\n", shared.refused);
  if (shared.board_bytes + shared.boards_refused > 0)
    text += fmt::format("  boards of collectives had up to {} KiB of {}; {} found no room (LACUNA_SHARED_BYTES)\n",
                        shared.board_bytes >> 10, shared.board_limit >> 10, shared.boards_refused);
  if (lost_) text += "  something is missing here: there was no memory for it\n";
  std::fputs(text.c_str(), stderr);
}

}  // namespace lacuna::mpi
