// A plan: a program whose tables are on the device.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/device/launched.hpp"
#include "lacuna/device/program.hpp"

namespace lacuna::device {

using base::Code;
using base::fail;

struct Plan::State {
  std::shared_ptr<Device> device;
  std::size_t pairs = 0;
  std::uint64_t alignment = 16;
  std::vector<kernel::Part> parts;
  std::vector<Launched> launches;  // all but the addresses
  void* memory = nullptr;          // of the device: the tables, then the parts if some way has many
  std::int64_t bytes = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (memory != nullptr) device->free(memory);
  }

  // Puts the tables, and parts that may not fit into a launch, on the device.
  Result<void> upload(const Program& program) {
    parts = program.parts;
    const bool many = std::ranges::any_of(program.groups, [](const Group& group) { return group.count > kernel::kInlineParts; });
    const std::size_t tables = program.tables.size() * sizeof(std::uint64_t);
    const std::size_t listed = many ? parts.size() * sizeof(kernel::Part) : 0;
    bytes = static_cast<std::int64_t>(tables + listed);
    std::byte* at = nullptr;
    if (bytes > 0) {
      memory = LACUNA_TRY(device->allocate(bytes));
      at = static_cast<std::byte*>(memory);
      if (tables > 0) LACUNA_TRY(device->copy(at, program.tables.data(), static_cast<std::int64_t>(tables), nullptr));
      if (listed > 0) LACUNA_TRY(device->copy(at + tables, parts.data(), static_cast<std::int64_t>(listed), nullptr));
      LACUNA_TRY(device->wait(nullptr));
    }
    for (const Group& group : program.groups) {
      Launched launched;
      launched.way = group.way;
      launched.parts = std::span(parts).subspan(group.first, group.count);
      launched.parts_on_device = group.count > kernel::kInlineParts ? reinterpret_cast<const kernel::Part*>(at + tables) + group.first : nullptr;
      launched.tables = reinterpret_cast<const kernel::u64*>(at);
      launched.tiles = group.tiles;
      launches.push_back(launched);
    }
    return {};
  }
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&& other) noexcept = default;
Plan& Plan::operator=(Plan&& other) noexcept = default;
Plan::~Plan() = default;

Result<Plan> Plan::make(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment) {
  Tuning tuning;
  tuning.processors = device->card().processors;
  return make_plan(std::move(device), pairs, alignment, tuning);
}

Result<Plan> make_plan(std::shared_ptr<Device> device, std::span<const Pair> pairs, int alignment, const Tuning& tuning) {
  if (pairs.size() > Plan::kMostPairs)
    return fail(Code::invalid_argument, fmt::format("{} pairs of layouts; a plan takes at most {}", pairs.size(), Plan::kMostPairs));
  if (alignment < 1 || alignment > 16 || (alignment & (alignment - 1)) != 0)
    return fail(Code::invalid_argument, fmt::format("an alignment of {}; it is 1, 2, 4, 8 or 16", alignment));
  const Program program = LACUNA_TRY(compile(pairs, alignment, tuning));

  auto state = std::make_unique<Plan::State>();
  state->device = std::move(device);
  state->pairs = pairs.size();
  state->alignment = static_cast<std::uint64_t>(alignment);
  LACUNA_TRY(state->upload(program));
  return Plan(std::move(state));
}

Result<void> Plan::move(std::span<const Addresses> addresses, Stream stream) const {
  if (addresses.size() != state_->pairs)
    return fail(Code::invalid_argument, fmt::format("{} pairs of addresses for a plan of {} pairs of layouts", addresses.size(), state_->pairs));
  std::array<kernel::Transfer, kernel::kMostTransfers> transfers{};
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const kernel::Transfer transfer{reinterpret_cast<kernel::u64>(addresses[i].from), reinterpret_cast<kernel::u64>(addresses[i].to)};
    if (((transfer.from | transfer.to) & (state_->alignment - 1)) != 0)
      return fail(Code::invalid_argument, fmt::format("pair {} is at {:#x} and {:#x}; the plan was made for addresses that {} divides", i, transfer.from,
                                                      transfer.to, state_->alignment));
    transfers[i] = transfer;
  }
  for (Launched launched : state_->launches) {
    launched.transfers = transfers;
    LACUNA_TRY(state_->device->launch(launched, stream));
  }
  return {};
}

std::string Plan::describe() const {
  std::string text;
  for (const kernel::Part& part : state_->parts) text += device::describe(part) + "\n";
  return text;
}
std::int64_t Plan::table_bytes() const { return state_->bytes; }

}  // namespace lacuna::device
