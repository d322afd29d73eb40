#include "tools/bench/device/baselines.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <optional>

#include "lacuna/device/cuda/driver.hpp"
#include "lacuna/device/cuda/images.hpp"
#include "lacuna/device/nest.hpp"
#include "lacuna/device/program.hpp"

namespace lacuna::bench {

std::span<const device::cuda::Image> baseline_images();

namespace {

using device::Addresses;
using device::Pair;
using device::Stream;

// Of CUDA 12.8; cuda.h of 12.4 lacks them.
struct CopyAttributes {
  int source_order;
  CUmemLocation source_hint;
  CUmemLocation destination_hint;
  unsigned flags;
};
using BatchCopy = CUresult(CUdeviceptr*, CUdeviceptr*, std::size_t*, std::size_t, CopyAttributes*, std::size_t*, std::size_t, std::size_t*,
                           CUstream);
using FindFunction = CUresult(const char*, void**, int, cuuint64_t, void*);

constexpr std::int64_t kMostCopies = 1 << 16;  // of a batch that is worth waiting for
constexpr std::int64_t kShortestCopy = 1 << 10;

CUdeviceptr at(const void* base, std::int64_t offset) { return reinterpret_cast<CUdeviceptr>(base) + static_cast<CUdeviceptr>(offset); }

}  // namespace

struct Baselines::State {
  const device::cuda::Driver* driver = nullptr;
  std::shared_ptr<device::Device> device;
  CUfunction naive = nullptr;
  CUfunction nothing = nullptr;
  decltype(&cuMemcpy3DAsync) copy_3d = nullptr;
  BatchCopy* batch = nullptr;
  std::vector<void*> memory;  // of the last case's tables

  void forget() {
    for (void* m : memory) device->free(m);
    memory.clear();
  }
};

Baselines::Baselines() : state_(std::make_unique<State>()) {}
Baselines::~Baselines() { state_->forget(); }

base::Result<std::unique_ptr<Baselines>> Baselines::make(std::shared_ptr<device::Device> device) {
  const auto& driver = device::cuda::driver();
  if (!driver) return std::unexpected(driver.error());
  auto baselines = std::make_unique<Baselines>();
  State& state = *baselines->state_;
  state.driver = &*driver;
  state.device = std::move(device);
  CUdevice gpu{};
  CUcontext context = nullptr;
  if (driver->device_get(&gpu, 0) != CUDA_SUCCESS || driver->retain_context(&context, gpu) != CUDA_SUCCESS ||
      driver->push_context(context) != CUDA_SUCCESS)
    return base::fail(base::Code::unsupported, "no context");
  for (const auto& image : baseline_images()) {
    CUmodule module = nullptr;
    if (driver->load_module(&module, image.code.data) != CUDA_SUCCESS) continue;
    if (driver->module_function(&state.naive, module, "naive") == CUDA_SUCCESS &&
        driver->module_function(&state.nothing, module, "nothing") == CUDA_SUCCESS)
      break;
  }
  if (state.nothing == nullptr) return base::fail(base::Code::unsupported, "the baselines' kernels do not load");
  void* file = dlopen("libcuda.so.1", RTLD_NOW);
  state.copy_3d = reinterpret_cast<decltype(&cuMemcpy3DAsync)>(dlsym(file, "cuMemcpy3DAsync_v2"));
  if (auto* find = reinterpret_cast<FindFunction*>(dlsym(file, "cuGetProcAddress_v2"))) {
    void* found = nullptr;
    if (find("cuMemcpyBatchAsync", &found, 12080, 0, nullptr) == CUDA_SUCCESS) state.batch = reinterpret_cast<BatchCopy*>(found);
  }
  return baselines;
}

bool Baselines::nothing(Stream stream) {
  return state_->driver->launch(state_->nothing, 1, 1, 1, 32, 1, 1, 0, static_cast<CUstream>(stream), nullptr, nullptr) == CUDA_SUCCESS;
}

namespace {

// What all contenders of one case are made of.
struct Made {
  Baselines::State* state;
  const Pair& pair;
  Addresses addresses;
  Stream stream;
  CUstream queue = static_cast<CUstream>(stream);

  [[nodiscard]] std::optional<Contender> element() const;
  [[nodiscard]] std::optional<Contender> rows(const device::Nest& nest) const;
  [[nodiscard]] std::optional<Contender> box(const device::Nest& nest) const;
  [[nodiscard]] std::optional<Contender> batch() const;
};

bool pitched(const device::Loop& loop, std::int64_t least) { return loop.from.stride >= least && loop.to.stride >= least; }

// Each thread moves one element of 8 bytes at most, whose address it computes.
std::optional<Contender> Made::element() const {
  device::Tuning plain;
  plain.tile_bytes = 1;
  plain.squares = false;
  std::ranges::fill(plain.window_run, INT64_MAX);
  const auto program = device::compile(std::span(&pair, 1), 16, plain);
  if (!program || program->parts.size() != 1) return {};
  auto launch = std::make_shared<device::kernel::Launch>();
  launch->part[0] = program->parts[0];
  device::kernel::Part& part = launch->part[0];
  if (part.word == 16 && !part.has_blocks) {
    part.word = 8;
    part.level[0].count *= 2;
    part.units *= 2;
  }
  if (part.word >= 16) return {};
  launch->transfers[0] = {reinterpret_cast<device::kernel::u64>(addresses.from), reinterpret_cast<device::kernel::u64>(addresses.to)};
  const auto bytes = static_cast<std::int64_t>(program->tables.size() * 8);
  if (bytes > 0) {
    const auto tables = state->device->allocate(bytes);
    if (!tables) return {};
    state->memory.push_back(*tables);
    if (!state->device->copy(*tables, program->tables.data(), bytes, stream) || !state->device->wait(stream)) return {};
    launch->tables = static_cast<const device::kernel::u64*>(*tables);
  }
  return Contender{"element", [launch, state = state, queue = queue] {
                     void* parameters[] = {launch.get()};
                     return state->driver->launch(state->naive, (launch->part[0].units + 255) / 256, 1, 1, 256, 1, 1, 0, queue, parameters,
                                                  nullptr) == CUDA_SUCCESS;
                   }};
}

std::optional<Contender> Made::rows(const device::Nest& nest) const {
  if (nest.loops.size() != 1 || !pitched(nest.loops[0], nest.size)) return {};
  return Contender{"2D", [loop = nest.loops[0], from = at(addresses.from, nest.from), to = at(addresses.to, nest.to), width = nest.size,
                          state = state, stream = stream] {
                     return state->device
                         ->copy_rows(reinterpret_cast<void*>(to), loop.to.stride, reinterpret_cast<void*>(from), loop.from.stride, width,
                                     loop.count, stream)
                         .has_value();
                   }};
}

std::optional<Contender> Made::box(const device::Nest& nest) const {
  if (nest.loops.size() != 2 || !pitched(nest.loops[1], nest.size) || state->copy_3d == nullptr) return {};
  const device::Loop& outer = nest.loops[0];
  const device::Loop& inner = nest.loops[1];
  if (outer.from.stride % inner.from.stride != 0 || outer.to.stride % inner.to.stride != 0 ||
      outer.from.stride < inner.from.stride * inner.count || outer.to.stride < inner.to.stride * inner.count)
    return {};
  auto copy = std::make_shared<CUDA_MEMCPY3D>();
  copy->srcMemoryType = copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy->srcDevice = at(addresses.from, nest.from);
  copy->dstDevice = at(addresses.to, nest.to);
  copy->srcPitch = static_cast<std::size_t>(inner.from.stride);
  copy->dstPitch = static_cast<std::size_t>(inner.to.stride);
  copy->srcHeight = static_cast<std::size_t>(outer.from.stride / inner.from.stride);
  copy->dstHeight = static_cast<std::size_t>(outer.to.stride / inner.to.stride);
  copy->WidthInBytes = static_cast<std::size_t>(nest.size);
  copy->Height = static_cast<std::size_t>(inner.count);
  copy->Depth = static_cast<std::size_t>(outer.count);
  return Contender{"3D", [copy, state = state, queue = queue] { return state->copy_3d(copy.get(), queue) == CUDA_SUCCESS; }};
}

std::optional<Contender> Made::batch() const {
  const std::int64_t pieces = std::max(pair.from.run_count(), pair.to.run_count());
  if (state->batch == nullptr || pieces <= 1 || pieces > kMostCopies || pair.from.size() / pieces < kShortestCopy) return {};
  struct Batch {
    std::vector<CUdeviceptr> from, to;
    std::vector<std::size_t> sizes;
  };
  auto batch = std::make_shared<Batch>();
  auto walk = layout::Intersection::of(pair.from, pair.to).value();
  while (!walk.done()) {
    const layout::Piece piece = walk.next();
    batch->from.push_back(at(addresses.from, piece.src));
    batch->to.push_back(at(addresses.to, piece.dst));
    batch->sizes.push_back(static_cast<std::size_t>(piece.length));
  }
  return Contender{"batch", [batch, state = state, queue = queue] {
                     CopyAttributes attributes{};
                     attributes.source_order = 1;  // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
                     std::size_t first = 0;
                     std::size_t failed = 0;
                     return state->batch(batch->to.data(), batch->from.data(), batch->sizes.data(), batch->sizes.size(), &attributes,
                                         &first, 1, &failed, queue) == CUDA_SUCCESS;
                   }};
}

}  // namespace

std::vector<Contender> Baselines::of(const Pair& pair, Addresses addresses, Stream stream) {
  state_->forget();
  const Made made{state_.get(), pair, addresses, stream};
  std::vector<Contender> found;
  const auto add = [&](std::optional<Contender> contender) {
    if (contender) found.push_back(*std::move(contender));
  };
  add(made.element());
  const auto nest = device::zip(pair.from, pair.to);
  if (nest && nest->from_form == nullptr && nest->to_form == nullptr && std::ranges::all_of(nest->loops, &device::Loop::strided)) {
    add(made.rows(*nest));
    add(made.box(*nest));
  }
  add(made.batch());
  return found;
}

}  // namespace lacuna::bench
