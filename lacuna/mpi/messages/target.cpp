// Where the bytes of a receive belong: how large that is, whose it is to put them there, and how they get there from a
// buffer.
#include <climits>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

// The first bytes of an element. What follows them stays as it is.
bool put_part_by_host(Job& job, const Target& target, const std::byte* from, std::int64_t bytes, std::byte* element, int size) {
  if (bytes == 0) return true;
  const Bounce whole = job.bounces.take(size);
  int position = 0;
  if (whole.data() == nullptr || host().Pack(element, 1, target.handle, whole.data(), size, &position, host().self) != kSuccess)
    return false;
  std::memcpy(whole.data(), from, static_cast<std::size_t>(bytes));
  position = 0;
  return host().Unpack(whole.data(), size, &position, element, 1, target.handle, host().self) == kSuccess;
}

// By the host, if it is a type that is not decoded, or memory that the CPU cannot touch.
bool put_by_host(Job& job, const Target& target, const std::byte* from, std::int64_t bytes) {
  const std::int64_t size = size_of(target.handle);
  if (size <= 0 || size > INT_MAX) return false;
  Aint low = 0, extent = 0;
  if (host().Type_get_extent(target.handle, &low, &extent) != kSuccess) return false;
  const std::int64_t at_once = INT_MAX / size;
  for (std::int64_t done = 0, left = bytes / size; left > 0;) {
    const auto elements = static_cast<int>(std::min(left, at_once));
    int position = 0;
    if (host().Unpack(from + done * size, static_cast<int>(elements * size), &position, target.base + done * extent, elements,
                      target.handle, host().self) != kSuccess)
      return false;
    done += elements;
    left -= elements;
  }
  const std::int64_t whole = bytes / size;
  return put_part_by_host(job, target, from + whole * size, bytes % size, target.base + whole * extent, static_cast<int>(size));
}

}  // namespace

bool Target::make_room_undecoded(Count elements) {
  const std::int64_t size = size_of(handle);
  if (size < 0) return false;
  asked = elements;
  count = std::min<Count>(elements, layout::kMaxBytes / 2 / std::max<std::int64_t>(size, 1));
  capacity = size * count;
  return true;
}

bool Target::on_device() {
  if (memory == Memory::unknown) memory = mpi::on_device(*type.get(), base, count) ? Memory::device : Memory::host;
  return memory == Memory::device;
}

bool Target::know(Types& types) {
  if (type != nullptr) return !on_device();
  try {
    if (!unknowable) type = types.find(handle);
  } catch (const std::bad_alloc&) {
    return false;
  }
  unknowable = type == nullptr;
  if (unknowable) return false;
  type.keep();
  return !on_device();
}

void Target::keep(Types& types) {
  if (type == nullptr || on_device()) loan = Loan(types, handle);  // the host needs the handle
  type.keep();
}

bool put(Job& job, Target& target, int source, const std::byte* from, std::int64_t bytes) try {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  const std::int64_t wanted = std::min(bytes, target.capacity);
  const bool on_device = target.type != nullptr && target.on_device();
  if ((target.type == nullptr || on_device) && put_by_host(job, target, from, wanted)) {
    const Why why = on_device ? Why::device_memory : target.unknowable ? Why::undecodable : Why::first_use;
    if (job.reports) job.report.passed.add(target.function, why);
    return true;
  }
  if (!target.know(job.types)) {
    job.bounces.drop();
    if (!target.know(job.types)) return false;
  }
  const base::Result<Elements> layout = at_second_try(job, [&] { return target.type->of(target.count); });
  if (layout && wanted > 0) copy::unpack(*layout, target.base, 0, wanted, from, copy::Caching::kept);
  if (began != 0) job.report.count(MessageReport::Way::unpacked, target.type.get(), target.count, source, bytes, base::now_ns() - began);
  return layout.has_value();
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace lacuna::mpi
