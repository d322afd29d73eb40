// A plan: a program whose tables are on the device.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lacuna/device/launched.hpp"
#include "lacuna/device/program.hpp"

namespace lacuna::device {

using base::Code;
using base::fail;

struct CopyPlan::State {
  std::shared_ptr<Device> device;
  std::size_t pairs = 0;
  std::uint64_t alignment = 16;
  std::vector<kernel::Part> parts;
  std::vector<Launched> launches;  // all but the addresses
  void* memory = nullptr;          // of the device
  std::int64_t bytes = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (memory != nullptr) device->free(memory);
  }

  // Puts on the device what does not travel with a launch: the tables; of ways with many parts the parts, and the part
  // of each tile.
  Result<void> upload(const Program& program) {
    parts = program.parts;
    std::vector<std::uint64_t> data = program.tables;
    const auto put = [&](const void* items, std::size_t bytes) {
      const std::size_t at = data.size();
      data.resize(at + (bytes + 7) / 8);
      std::memcpy(data.data() + at, items, bytes);
      return at;
    };
    struct Places {
      std::size_t parts, owners;
    };
    std::vector<Places> places;
    for (const Group& group : program.groups) {
      places.push_back({0, 0});
      if (group.count <= kernel::kInlineParts) continue;
      places.back().parts = put(&parts[group.first], group.count * sizeof(kernel::Part));
      if (group.tiles <= kMostOwners) {
        const std::vector<std::uint32_t> owners = owners_of(std::span(parts).subspan(group.first, group.count), group.tiles);
        places.back().owners = put(owners.data(), owners.size() * sizeof(std::uint32_t));
      }
    }
    bytes = static_cast<std::int64_t>(data.size() * sizeof(std::uint64_t));
    if (bytes > 0) {
      memory = LACUNA_TRY(device->allocate(bytes));
      LACUNA_TRY(device->copy(memory, data.data(), bytes, nullptr));
      LACUNA_TRY(device->wait(nullptr));
    }
    const auto* const words = static_cast<const kernel::u64*>(memory);
    for (std::size_t i = 0; i < program.groups.size(); ++i) {
      const Group& group = program.groups[i];
      Launched launched{.way = group.way, .launch = {}};
      launched.launch.tables = words;
      launched.launch.parts = static_cast<kernel::u32>(group.count);
      launched.launch.tiles = group.tiles;
      if (group.count <= kernel::kInlineParts) {
        std::copy_n(parts.begin() + static_cast<std::ptrdiff_t>(group.first), group.count, launched.launch.part);
      } else {
        launched.launch.more = reinterpret_cast<const kernel::Part*>(words + places[i].parts);
        if (places[i].owners > 0) launched.launch.owners = reinterpret_cast<const kernel::u32*>(words + places[i].owners);
      }
      launches.push_back(launched);
    }
    return {};
  }

  static std::vector<std::uint32_t> owners_of(std::span<const kernel::Part> group, std::uint32_t tiles) {
    std::vector<std::uint32_t> owners(tiles);
    for (std::size_t p = 0; p < group.size(); ++p) {
      const std::uint32_t end = p + 1 < group.size() ? group[p + 1].first_tile : tiles;
      std::fill(owners.begin() + group[p].first_tile, owners.begin() + end, static_cast<std::uint32_t>(p));
    }
    return owners;
  }

  static constexpr std::uint32_t kMostOwners = 1 << 20;
};

CopyPlan::CopyPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
CopyPlan::CopyPlan(CopyPlan&& other) noexcept = default;
CopyPlan& CopyPlan::operator=(CopyPlan&& other) noexcept = default;
CopyPlan::~CopyPlan() = default;

Result<CopyPlan> CopyPlan::make(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment) {
  Tuning tuning;
  tuning.processors = device->card().processors;
  return make_plan(std::move(device), pairs, alignment, tuning);
}

Result<CopyPlan> make_plan(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment, const Tuning& tuning) {
  if (pairs.size() > CopyPlan::kMostPairs)
    return fail(Code::invalid_argument, fmt::format("{} pairs of layouts; a plan takes at most {}", pairs.size(), CopyPlan::kMostPairs));
  if (alignment < 1 || alignment > 16 || (alignment & (alignment - 1)) != 0)
    return fail(Code::invalid_argument, fmt::format("an alignment of {}; it is 1, 2, 4, 8 or 16", alignment));
  const Program program = LACUNA_TRY(compile(pairs, alignment, tuning));

  auto state = std::make_unique<CopyPlan::State>();
  state->device = std::move(device);
  state->pairs = pairs.size();
  state->alignment = static_cast<std::uint64_t>(alignment);
  LACUNA_TRY(state->upload(program));
  return CopyPlan(std::move(state));
}

Result<void> CopyPlan::move(std::span<const Addresses> addresses, Stream stream) const {
  if (addresses.size() != state_->pairs)
    return fail(Code::invalid_argument,
                fmt::format("{} pairs of addresses for a plan of {} pairs of layouts", addresses.size(), state_->pairs));
  kernel::Transfer transfers[kMostPairs];
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const kernel::Transfer transfer{reinterpret_cast<kernel::u64>(addresses[i].from), reinterpret_cast<kernel::u64>(addresses[i].to)};
    if (((transfer.from | transfer.to) & (state_->alignment - 1)) != 0)
      return fail(Code::invalid_argument, fmt::format("pair {} is at {:#x} and {:#x}; the plan was made for addresses that {} divides", i,
                                                      transfer.from, transfer.to, state_->alignment));
    transfers[i] = transfer;
  }
  for (Launched launched : state_->launches) {
    std::copy_n(transfers, addresses.size(), launched.launch.transfers);
    LACUNA_TRY(state_->device->launch(launched, stream));
  }
  return {};
}

std::string CopyPlan::describe() const {
  std::string text;
  for (const kernel::Part& part : state_->parts) text += device::describe(part) + "\n";
  return text;
}
std::int64_t CopyPlan::table_bytes() const { return state_->bytes; }

}  // namespace lacuna::device
