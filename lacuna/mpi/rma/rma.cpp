#include "lacuna/mpi/rma/rma.hpp"

#include <climits>

#include "lacuna/copy/copy.hpp"
#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/mpi/types/device_memory.hpp"

namespace lacuna::mpi {
namespace {

bool has_gaps(const Type& type, Count count) { return !type.contiguous(count); }

}  // namespace

void RmaWindows::made(Win win, bool shared) {
  const std::scoped_lock lock(mutex_);
  all_[win].shared = shared;
}

void RmaWindows::freed(Win win) {
  const std::scoped_lock lock(mutex_);
  all_.erase(win);
}

Bounce RmaWindows::take(Process& process, bool gets, const void* base, Count count, Datatype type, int target, Count target_count,
                        Datatype target_type, Win win, Origin& origin) try {
  const auto left = [&](Why why) {
    origin.why = why;
    return Bounce();
  };
  if (count <= 0 || target < 0) return left(Why::no_data);
  if (process.types.is_short(type, count, INT64_MAX)) return left(Why::contiguous);
  bool early = false, early_there = false;
  origin.type = process.types.find(type, count, early);
  const Use there = process.types.find(target_type, target_count, early_there);
  if (origin.type == nullptr) return left(early ? Why::first_use : Why::undecodable);
  if (!has_gaps(*origin.type.get(), count)) return left(Why::contiguous);
  origin.bytes = origin.type->bytes(count);
  if (origin.bytes < guide::usual::kRmaBytes) return left(Why::too_short);
  if (origin.bytes > INT_MAX) return left(Why::too_long);
  if (origin.type->size() / guide::usual::kRmaRun >= origin.type->layout().run_count()) return left(Why::long_runs);
  if (base == nullptr && !origin.type->absolute()) return left(Why::in_error);
  if (on_device(*origin.type.get(), base, count)) return left(Why::device_memory);
  if (there == nullptr) return left(early_there ? Why::first_use : Why::undecodable);
  if (there->bytes(target_count) != origin.bytes) return left(Why::in_error);
  origin.base = static_cast<std::byte*>(const_cast<void*>(base));
  origin.count = count;
  const std::scoped_lock lock(mutex_);
  const auto window = all_.find(win);
  if (window == all_.end()) return left(Why::of_host);
  if (window->second.bytes + origin.bytes > kRoom) return left(Why::no_room);
  if (!guide::usual::rma_packing_pays(process.library, gets, window->second.shared, has_gaps(*there.get(), target_count)))
    return left(Why::host_is_fast);
  std::vector<Operation>& operations = window->second.operations;
  // add() is to want no memory
  if (operations.size() == operations.capacity()) operations.reserve(2 * operations.size() + 8);
  origin.why = Why::no_memory;
  return process.bounces.take(origin.bytes);
} catch (const std::bad_alloc&) {
  origin.why = Why::no_memory;
  return {};
}

void RmaWindows::add(Win win, int target, bool gets, Origin origin, Bounce bounce) {
  const std::scoped_lock lock(mutex_);
  RmaWindow& window = all_[win];
  window.bytes += origin.bytes;
  origin.type.keep();
  window.operations.push_back({target, gets, std::move(origin), std::move(bounce)});
}

void RmaWindows::complete(Process& process, Win win, int target) {
  const std::scoped_lock lock(mutex_);
  const auto found = all_.find(win);
  if (found == all_.end() || found->second.operations.empty()) return;
  RmaWindow& window = found->second;
  const auto is_over = [&](const Operation& one) { return target == kAll || one.target == target; };
  for (const Operation& one : window.operations) {
    if (!is_over(one)) continue;
    window.bytes -= one.origin.bytes;
    if (!one.gets) continue;
    const std::int64_t began = process.report.on() ? base::now_ns() : 0;
    if (const base::Result<Elements> layout = one.origin.type->of(one.origin.count); layout)
      copy::unpack(*layout, one.origin.base, 0, one.origin.bytes, one.bounce.data(), copy::Caching::kept);
    if (began != 0)
      process.report.count(MessageReport::Way::got, one.origin.type.get(), one.origin.count, one.target, one.origin.bytes,
                           base::now_ns() - began);
  }
  std::erase_if(window.operations, is_over);
}

}  // namespace lacuna::mpi
