#include "lacuna/device/emulated/device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "lacuna/device/emulated/allocations.hpp"
#include "lacuna/device/emulated/queue.hpp"
#include "lacuna/device/launched.hpp"

namespace lacuna::device::emulated {
namespace {

using base::Code;
using base::fail;

// What a GPU does with kernel.cu, thread after thread.
void run(const kernel::Launch& launch, std::span<const kernel::Part> parts, kernel::Way way) {
  for (kernel::u32 tile = 0; tile < launch.tiles; ++tile) {
    std::vector<kernel::u8> shared(kernel::kSharedBytes, 0xcd);
    const kernel::u32 owner = kernel::part_of_tile(parts.data(), launch.parts, tile);
    if (launch.owners != nullptr && kernel::load<kernel::u32>(reinterpret_cast<kernel::u64>(launch.owners + tile)) != owner)
      stray(fmt::format("is told another part for tile {} than {}, whose it is", tile, owner));
    const kernel::Part& part = parts[owner];
    const kernel::Transfer& bases = launch.transfers[part.transfer];
    if (way == kernel::Way::squares) {
      const kernel::Square square = kernel::square_of(launch.tables, bases, part, tile - part.first_tile);
      for (kernel::u32 thread = 0; thread < kernel::kThreads; ++thread) kernel::read_any_square(part, square, shared.data(), thread);
      for (kernel::u32 thread = 0; thread < kernel::kThreads; ++thread) kernel::write_any_square(part, square, shared.data(), thread);
      continue;
    }
    for (kernel::u32 thread = 0; thread < kernel::kThreads; ++thread) {
      if (way == kernel::Way::words)
        kernel::move_tile<kernel::Way::words>(launch.tables, bases, part, tile, thread);
      else if (way == kernel::Way::bytes)
        kernel::move_tile<kernel::Way::bytes>(launch.tables, bases, part, tile, thread);
      else
        kernel::move_tile<kernel::Way::windows>(launch.tables, bases, part, tile, thread);
    }
  }
}

// An event: the last point that it was recorded at. Who waits, waits for the one of that time, whatever is recorded
// later.
class Recorded {
 public:
  std::shared_ptr<Mark> renew() {
    const std::scoped_lock lock(mutex_);
    return mark_ = std::make_shared<Mark>();
  }
  [[nodiscard]] std::shared_ptr<Mark> last() {
    const std::scoped_lock lock(mutex_);
    return mark_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

class Emulated final : public Device {
 public:
  Emulated() {
    card_.name = "emulated";
    card_.model = "the CPU, as a device";
    card_.processors = 1;
    card_.memory_bytes = std::int64_t{1} << 38;
  }

  [[nodiscard]] const Card& card() const override { return card_; }

  Result<void*> allocate(std::int64_t bytes) override { return Allocations::all().take(bytes); }
  Result<void*> allocate_pinned(std::int64_t bytes) override { return Allocations::all().take_pinned(bytes); }
  void free(void* memory) noexcept override {
    if (memory == nullptr) return;
    {
      const std::scoped_lock lock(mutex_);
      default_.drain();
      for (const auto& queue : streams_) queue->drain();
    }
    Allocations::all().give_back(memory);
  }

  Result<void> copy(void* to, const void* from, std::int64_t bytes, Stream stream) override {
    return copy_rows(to, bytes, from, bytes, bytes, 1, stream);
  }
  Result<void> fill(void* to, std::uint8_t value, std::int64_t bytes, Stream stream) override {
    queue(stream).add([=] { std::memset(Allocations::all().reached(to, bytes), value, static_cast<std::size_t>(bytes)); });
    return {};
  }
  Result<void> copy_rows(void* to, std::int64_t to_pitch, const void* from, std::int64_t from_pitch, std::int64_t width, std::int64_t rows,
                         Stream stream) override {
    queue(stream).add([=] {
      std::byte* const into = Allocations::all().reached(to, (rows - 1) * to_pitch + width);
      const std::byte* const out_of = Allocations::all().reached(from, (rows - 1) * from_pitch + width);
      for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(into + row * to_pitch, out_of + row * from_pitch, static_cast<std::size_t>(width));
    });
    return {};
  }
  Result<void> launch(const Launched& launched, Stream stream) override {
    queue(stream).add([launched] {
      const kernel::Launch& launch = launched.launch;
      std::vector<kernel::Part> parts(launch.parts);
      const std::size_t bytes = parts.size() * sizeof(kernel::Part);
      const auto* listed = launched.many() ? Allocations::all().reached(launch.more, static_cast<std::int64_t>(bytes))
                                           : reinterpret_cast<const std::byte*>(launch.part);
      std::memcpy(parts.data(), listed, bytes);
      run(launch, parts, launched.way);
    });
    return {};
  }

  Result<Stream> create_stream() override {
    const std::scoped_lock lock(mutex_);
    return streams_.emplace_back(std::make_unique<Queue>()).get();
  }
  void destroy_stream(Stream stream) noexcept override {
    const std::scoped_lock lock(mutex_);
    std::erase_if(streams_, [&](const auto& queue) { return queue.get() == stream; });
  }
  Result<void> wait(Stream stream) override {
    queue(stream).drain();
    return {};
  }

  Result<Event> create_event() override { return new Recorded; }
  void destroy_event(Event event) noexcept override { delete static_cast<Recorded*>(event); }
  Result<void> record(Event event, Stream stream) override {
    queue(stream).add([at = static_cast<Recorded*>(event)->renew()] { at->happen(base::now_ns()); });
    return {};
  }
  Result<void> wait_in_stream(Event event, Stream stream) override {
    if (const auto at = static_cast<Recorded*>(event)->last()) queue(stream).add([at] { at->wait(); });
    return {};
  }
  Result<double> elapsed_us(Event begin, Event end) override {
    const auto from = static_cast<Recorded*>(begin)->last();
    const auto to = static_cast<Recorded*>(end)->last();
    if (from == nullptr || to == nullptr) return fail(Code::invalid_argument, "an event that was never recorded");
    const std::int64_t ended = to->wait();
    return static_cast<double>(ended - from->wait()) / 1e3;
  }

  Result<Share> share(void* /*memory*/) override {
    return fail(Code::unsupported, "the emulated device's memory stays within its process");
  }
  Result<void*> attach(const Share& /*share*/) override {
    return fail(Code::unsupported, "the emulated device's memory stays within its process");
  }
  void detach(void* /*memory*/) noexcept override {}

  [[nodiscard]] bool owns(const void* address) const override { return Allocations::all().of_device(address); }

 private:
  Queue& queue(Stream stream) { return stream == nullptr ? default_ : *static_cast<Queue*>(stream); }

  Card card_;
  Queue default_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Queue>> streams_;
};

}  // namespace

bool owns(const void* address) { return Allocations::all().of_device(address); }
std::shared_ptr<Device> make() { return std::make_shared<Emulated>(); }

}  // namespace lacuna::device::emulated
