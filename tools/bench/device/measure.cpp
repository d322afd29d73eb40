#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/device/program.hpp"
#include "tools/bench/device/baselines.hpp"
#include "tools/bench/device/bench.hpp"
#include "tools/bench/device/rows.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::bench {
namespace {

using device::Addresses;
using device::Pair;
using layout::Layout;
using nlohmann::json;

constexpr std::int64_t kSector = 32;
constexpr std::int64_t kMargin = std::int64_t{64} << 20;

// Bytes of memory that the rows reach: those of some groups have few gaps.
std::int64_t memory_of(const DeviceRequest& request) {
  constexpr std::array dense{"faces", "structs", "transposes", "unequal"};
  std::string left = request.groups + ",";
  bool all_dense = !request.groups.empty();
  while (!left.empty()) {
    const std::string group = left.substr(0, left.find(','));
    all_dense = all_dense && std::ranges::find(dense, group) != dense.end();
    left.erase(0, group.size() + 1);
  }
  return all_dense ? request.payload * 4 + kMargin : (std::int64_t{1} << 30) + kMargin;
}

template <class T>
T must(base::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::int64_t end_of(const Layout& layout) { return layout.true_lower_bound() + layout.true_extent(); }

// What the memory has to move at least. A GPU's L2 has sectors of 32 bytes, which is what `sectors` counts, each once.
// But the memory behind it is read 64 bytes at a time, and a sector that is written in part is read first, to be whole
// when it goes back: `atoms` counts these.
struct Traffic {
  std::int64_t sectors = 0;
  std::int64_t atoms = 0;
};
Traffic traffic_of(const Layout& layout, bool written) {
  std::vector<std::uint64_t> seen(static_cast<std::size_t>(end_of(layout) / kSector / 64 + 1));
  std::vector<std::uint8_t> filled(written ? static_cast<std::size_t>(end_of(layout) / kSector + 1) : 0);
  layout::Cursor cursor(layout);
  while (!cursor.done()) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    for (std::int64_t s = run.offset / kSector; s <= (run.offset + run.length - 1) / kSector; ++s) {
      seen[static_cast<std::size_t>(s / 64)] |= std::uint64_t{1} << (s % 64);
      if (written) {
        const std::int64_t low = std::max(run.offset, s * kSector);
        const std::int64_t high = std::min(run.offset + run.length, (s + 1) * kSector);
        filled[static_cast<std::size_t>(s)] = static_cast<std::uint8_t>(filled[static_cast<std::size_t>(s)] + (high - low));
      }
    }
  }
  std::int64_t sectors = 0;
  std::int64_t atoms = 0;
  for (const std::uint64_t word : seen) {
    sectors += std::popcount(word);
    atoms += std::popcount((word | word >> 1) & 0x5555555555555555);
  }
  if (!written) return {sectors * kSector, atoms * 2 * kSector};
  const auto partial = std::ranges::count_if(filled, [](std::uint8_t bytes) { return bytes > 0 && bytes < kSector; });
  return {sectors * kSector, (sectors + partial) * kSector};
}

class Bench {
 public:
  explicit Bench(const DeviceRequest& request)
      : request_(request), memory_(memory_of(request)), device_(must(device::open(request.device))) {
    if (request.device.starts_with("cuda:")) baselines_ = must(Baselines::make(device_));
    stream_ = must(device_->create_stream());
    begin_ = must(device_->create_event());
    end_ = must(device_->create_event());
    from_ = allocate(memory_);
    to_ = allocate(memory_);
    scratch_ = allocate(kScratch);
    source_ = static_cast<std::byte*>(must(device_->allocate_pinned(memory_)));
    found_ = static_cast<std::byte*>(must(device_->allocate_pinned(memory_)));
    expected_.resize(static_cast<std::size_t>(memory_));
    std::uint64_t word = 88172645463325252ULL;
    for (std::int64_t i = 0; i < memory_ / 8; ++i) {
      word ^= word << 13, word ^= word >> 7, word ^= word << 17;
      std::memcpy(source_ + i * 8, &word, 8);
    }
    must(device_->copy(from_, source_, memory_, stream_));
    must(device_->wait(stream_));
  }

  json hello(std::int64_t rows) {
    const device::Card& card = device_->card();
    return {{"hello",
             {{"device", card.name},
              {"model", card.model},
              {"driver", card.driver},
              {"processors", card.processors},
              {"memory_bytes", card.memory_bytes},
              {"cache_bytes", card.cache_bytes},
              {"rows", rows},
              {"version", base::version()}}}};
  }

  // One row: ours, the baselines, and a contiguous copy of as many sectors.
  json row(const DeviceRow& row) {
    const Pair pair{row.from, row.to};
    const Traffic read = traffic_of(row.from, false);
    const Traffic written = traffic_of(row.to, true);
    const std::int64_t traffic = read.sectors + written.sectors;
    const std::int64_t atoms = read.atoms + written.atoms;
    device::Tuning tuning;
    tuning.processors = device_->card().processors;
    if (request_.tile_bytes > 0) tuning.tile_bytes = request_.tile_bytes;
    tuning.squares = request_.squares;
    if (request_.window_run > 0) std::ranges::fill(tuning.window_run, request_.window_run);
    const std::int64_t started = base::now_ns();
    const device::CopyPlan plan = must(device::make_plan(device_, std::span(&pair, 1), 16, tuning));
    const double plan_ms = static_cast<double>(base::now_ns() - started) / 1e6;
    const Addresses addresses{from_, to_};

    std::vector<Contender> all{
        {"lacuna", [&] { return plan.move(std::span(&addresses, 1), stream_).has_value(); }},
        {"contiguous", [&] { return device_->copy(to_, from_, std::min(traffic / 2, memory_), stream_).has_value(); }}};
    for (Contender& baseline : baselines(pair, addresses)) all.push_back(std::move(baseline));

    std::map<std::string, double> us = times(all, request_.warm);
    const bool right = verify(row, plan);
    const double limit = us["contiguous"] * static_cast<double>(traffic) / 2 / static_cast<double>(std::min(traffic / 2, memory_));
    double best = 0;
    std::string best_name;
    for (const auto& [name, time] : us) {
      if (name != "lacuna" && name != "contiguous" && (best == 0 || time < best)) best = time, best_name = name;
    }
    json out{{"group", row.group},
             {"name", row.name},
             {"payload", row.from.size()},
             {"runs", row.from.run_count() > row.to.run_count() ? row.from.run_count() : row.to.run_count()},
             {"traffic", traffic},
             {"atoms", atoms},
             {"us", us},
             {"limit_us", limit},
             {"share", limit * static_cast<double>(atoms) / static_cast<double>(traffic) / us["lacuna"]},
             {"share_of_sectors", limit / us["lacuna"]},
             {"gb_per_s", static_cast<double>(row.from.size()) / us["lacuna"] / 1e3},
             {"traffic_gb_per_s", static_cast<double>(traffic) / us["lacuna"] / 1e3},
             {"verified", right},
             {"plan_ms", plan_ms},
             {"table_bytes", plan.table_bytes()},
             {"parts", plan.describe().substr(0, 300)}};
    const ArrayForm& array = row.from_array.item > 0 ? row.from_array : row.to_array;
    if (array.item > 0)
      out["array"] = {{"pack", row.from_array.item > 0},
                      {"item", array.item},
                      {"shape", array.shape},
                      {"strides", array.strides},
                      {"list_of", array.list_of}};
    if (row.group == "sizes") out["warm_us"] = times(all, true);
    if (best > 0) out["best_rival"] = best_name, out["of_best_rival"] = us["lacuna"] / best;
    wrong_ = wrong_ || !right;
    return {{"row", out}};
  }

  // From the device into pinned memory of the host, or back: by the kernel, by packing and a copy, by the copy engine.
  json host_row(const DeviceRow& row, bool to_host) {
    const std::int64_t bytes = row.from.size();
    const Pair whole{row.from, row.to};
    const Layout dense = Layout::bytes(bytes).value();
    const device::CopyPlan direct = must(device::CopyPlan::make(device_, std::span(&whole, 1)));
    void* const far = found_;
    const Addresses out = to_host ? Addresses{from_, far} : Addresses{far, to_};
    const Addresses staged = to_host ? Addresses{from_, scratch_} : Addresses{scratch_, to_};
    if (!to_host) std::memcpy(found_, source_, static_cast<std::size_t>(bytes));
    std::vector<Contender> all{
        {"kernel", [&] { return direct.move(std::span(&out, 1), stream_).has_value(); }},
        {"staged",
         [&] {
           if (to_host)
             return direct.move(std::span(&staged, 1), stream_).has_value() && device_->copy(far, scratch_, bytes, stream_).has_value();
           return device_->copy(scratch_, far, bytes, stream_).has_value() && direct.move(std::span(&staged, 1), stream_).has_value();
         }},
        {"contiguous",
         [&] { return (to_host ? device_->copy(far, from_, bytes, stream_) : device_->copy(to_, far, bytes, stream_)).has_value(); }}};
    for (Contender& baseline : baselines(whole, out)) {
      if (baseline.name != "element") all.push_back(std::move(baseline));
    }
    std::map<std::string, double> us = times(all, request_.warm);
    std::map<std::string, double> gb;
    for (const auto& [name, time] : us) gb[name] = static_cast<double>(bytes) / time / 1e3;
    return {{"host", {{"name", row.name}, {"to_host", to_host}, {"payload", bytes}, {"us", us}, {"gb_per_s", gb}}}};
  }

  // All faces of a box in one launch and its wait, by the host's clock, beside a kernel that does nothing.
  json faces_row() {
    const std::vector<Layout> all = faces(128);
    std::vector<Pair> pairs;
    std::vector<Addresses> addresses;
    std::int64_t at = 0;
    for (const Layout& face : all) {
      pairs.push_back({face, Layout::bytes(face.size()).value()});
      addresses.push_back({from_, static_cast<std::byte*>(to_) + at});
      at += (face.size() + 255) / 256 * 256;
    }
    const device::CopyPlan plan = must(device::CopyPlan::make(device_, pairs));
    std::vector<double> ours;
    std::vector<double> nothing;
    const auto timed = [&](auto&& launch, std::vector<double>& into) {
      const std::int64_t begun = base::now_ns();
      if (!launch()) throw std::runtime_error("a launch failed");
      must(device_->wait(stream_));
      into.push_back(static_cast<double>(base::now_ns() - begun) / 1e3);
    };
    for (int i = 0; i < 500; ++i) {
      timed([&] { return plan.move(addresses, stream_).has_value(); }, ours);
      timed([&] { return baselines_ == nullptr || baselines_->nothing(stream_); }, nothing);
    }
    must(device_->fill(to_, 0xA5, at, stream_));
    must(plan.move(addresses, stream_));
    must(device_->copy(found_, to_, at, stream_));
    must(device_->wait(stream_));
    bool right = true;
    std::int64_t place = 0;
    for (const Layout& face : all) {
      copy::pack(face, source_, 0, face.size(), expected_.data());
      right = right && std::memcmp(found_ + place, expected_.data(), static_cast<std::size_t>(face.size())) == 0;
      place += (face.size() + 255) / 256 * 256;
    }
    wrong_ = wrong_ || !right;
    return {{"faces",
             {{"box", 128},
              {"pairs", all.size()},
              {"us", median(ours)},
              {"nothing_us", median(nothing)},
              {"times", median(ours) / median(nothing)},
              {"verified", right}}}};
  }

  // Pages of another process's memory into pages here: the child is this program again.
  json processes_row(const char* program) {
    const auto shared = device_->share(from_);
    if (!shared) return {{"processes", {{"skipped", shared.error().text()}}}};
    const device::Share share = *shared;
    std::string text;
    for (const std::byte byte : share) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], 1);
      execl(program, program, "--attach", text.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error(fmt::format("the other process ended with {}: {}", status, said));
    return json::parse(said);
  }

  // What the other process does: `from_` is its own random memory until the share takes its place.
  json receive(const device::Share& share) {
    void* const theirs = must(device_->attach(share));
    constexpr std::int64_t page = 16384;
    constexpr std::int64_t count = 8192;
    const Pair pair{Layout::paged(page, corpus::ddtbench_list(count * 4, count, 7)).value(),
                    Layout::paged(page, corpus::ddtbench_list(count * 4, count, 8)).value()};
    const device::CopyPlan plan = must(device::CopyPlan::make(device_, std::span(&pair, 1)));
    const Addresses addresses{theirs, to_};
    std::map<std::string, double> us =
        times({{"lacuna", [&] { return plan.move(std::span(&addresses, 1), stream_).has_value(); }},
               {"contiguous", [&] { return device_->copy(scratch_, from_, page * count, stream_).has_value(); }}},
              request_.warm);
    const bool right = verify({"", "", pair.from, pair.to, {}, {}}, plan, theirs);
    device_->detach(theirs);
    return {
        {"processes",
         {{"page", page}, {"payload", page * count}, {"us", us}, {"share_of_copy", us["contiguous"] / us["lacuna"]}, {"verified", right}}}};
  }

  [[nodiscard]] bool wrong() const { return wrong_; }

 private:
  static constexpr std::int64_t kScratch = std::int64_t{256} << 20;  // more than any L2

  std::vector<Contender> baselines(const Pair& pair, Addresses addresses) {
    return baselines_ == nullptr ? std::vector<Contender>{} : baselines_->of(pair, addresses, stream_);
  }

  void* allocate(std::int64_t bytes) { return must(device_->allocate(bytes)); }

  // Medians of the contenders, in turn; cold: all caches hold something else.
  std::map<std::string, double> times(const std::vector<Contender>& all, bool warm) {
    std::map<std::string, std::vector<double>> samples;
    const bool on_gpu = baselines_ != nullptr;  // else times tell nothing, and there is no cache to fill
    for (int repeat = 0; repeat <= (on_gpu ? request_.repeats : 1); ++repeat) {
      for (const Contender& contender : all) {
        if (warm || !on_gpu)
          (void)contender.run();
        else
          must(device_->fill(scratch_, static_cast<std::uint8_t>(repeat), kScratch, stream_));
        must(device_->record(begin_, stream_));
        const bool done = contender.run();
        must(device_->record(end_, stream_));
        const double us = must(device_->elapsed_us(begin_, end_));
        if (done && repeat > 0) samples[contender.name].push_back(us);  // the first one warms up
      }
    }
    std::map<std::string, double> medians;
    for (auto& [name, values] : samples) medians[name] = median(std::move(values));
    return medians;
  }

  bool verify(const DeviceRow& row, const device::CopyPlan& plan, const void* from = nullptr) {
    const std::int64_t bytes = end_of(row.to);
    const Addresses addresses{from != nullptr ? from : from_, to_};
    must(device_->fill(to_, 0xA5, bytes, stream_));
    must(plan.move(std::span(&addresses, 1), stream_));
    must(device_->copy(found_, to_, bytes, stream_));
    std::memset(expected_.data(), 0xA5, static_cast<std::size_t>(bytes));
    must(copy::transpack(row.from, source_, row.to, expected_.data()));
    must(device_->wait(stream_));
    return std::memcmp(found_, expected_.data(), static_cast<std::size_t>(bytes)) == 0;
  }

  const DeviceRequest& request_;
  std::int64_t memory_;  // bytes of each side
  std::shared_ptr<device::Device> device_;
  std::unique_ptr<Baselines> baselines_;
  device::Stream stream_ = nullptr;
  device::Event begin_ = nullptr;
  device::Event end_ = nullptr;
  void* from_ = nullptr;
  void* to_ = nullptr;
  void* scratch_ = nullptr;
  std::byte* source_ = nullptr;
  std::byte* found_ = nullptr;
  std::vector<std::byte> expected_;
  bool wrong_ = false;
};

void say(const json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

bool wanted(const std::string& groups, const std::string& group) {
  return groups.empty() || ("," + groups + ",").find("," + group + ",") != std::string::npos;
}

// Rows of the groups that are wanted, those of the host counted by themselves.
bool is_wanted(const DeviceRequest& request, const RowMaker& maker) {
  return wanted(request.groups, maker.group) && (maker.group + maker.name).find(request.only) != std::string::npos;
}
bool is_wanted_for_host(const DeviceRequest& request, const RowMaker& maker) {
  return wanted(request.groups, "host") && (maker.group == "vectors" || maker.group == "lists") && maker.a >= 64;
}
std::int64_t planned(const DeviceRequest& request) {
  std::int64_t count = wanted(request.groups, "faces") ? 1 : 0;
  count += wanted(request.groups, "processes") ? 1 : 0;
  for (const RowMaker& maker : device_rows()) count += (is_wanted(request, maker) ? 1 : 0) + (is_wanted_for_host(request, maker) ? 1 : 0);
  return count;
}

}  // namespace

int measure_device(const DeviceRequest& request, const char* program) {
  try {
    const std::int64_t until = base::now_ns() + request.seconds * 1'000'000'000;
    Bench bench(request);
    say(bench.hello(planned(request)));
    if (wanted(request.groups, "faces")) say(bench.faces_row());
    if (wanted(request.groups, "processes")) say(bench.processes_row(program));
    int left_out = 0;
    for (const RowMaker& maker : device_rows()) {
      const bool ours = is_wanted(request, maker);
      const bool host = is_wanted_for_host(request, maker);
      if (!ours && !host) continue;
      if (base::now_ns() > until) {
        left_out += (ours ? 1 : 0) + (host ? 1 : 0);
        continue;
      }
      const DeviceRow row = maker.make(maker, request.payload);
      if (std::max(end_of(row.from), end_of(row.to)) > memory_of(request)) throw std::runtime_error(row.name + " reaches too far");
      if (ours) say(bench.row(row));
      if (host) say(bench.host_row(row, maker.text == "pack"));
    }
    say({{"end", {{"left_out", left_out}, {"wrong", bench.wrong()}}}});
    return bench.wrong() ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lacuna-device-bench: {}\n", error.what());
    return 1;
  }
}

int receive_from_another_process(const char* share_text) {
  try {
    device::Share share{};
    const std::string text = share_text;
    if (text.size() != share.size() * 2) throw std::runtime_error("no share");
    for (std::size_t i = 0; i < share.size(); ++i) share[i] = static_cast<std::byte>(std::stoi(text.substr(i * 2, 2), nullptr, 16));
    const DeviceRequest request;
    Bench bench(request);
    say(bench.receive(share));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lacuna-device-bench --attach: {}\n", error.what());
    return 1;
  }
}

}  // namespace lacuna::bench
