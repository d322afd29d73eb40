// How a message is sent: by the host as it is, packed here, offered, or in chunks to another node.
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

// Packed, if the host can send so much.
How fitting(Source& source) {
  if (Bytes::fits(source.bytes)) return How::packed;
  source.why = Why::too_long;
  return How::host;
}

// Of a message that is understood; or `why` the host has it. A buffered send takes its room from the program's buffer,
// whatever becomes of the message. A synchronous one is over when its receive has begun, which only the host can tell:
// a descriptor may have been received by a probe. A persistent one goes its way at each start, so it tries none.
How way_of(Job& job, Source& source, SendMode mode, bool once) {
  const bool ends_in_host = mode == SendMode::buffered || mode == SendMode::synchronous;
  const bool remote = source.to.remote >= 0;
  source.why = Why::contiguous;
  if (source.contiguous()) {
    if (source.bytes < job.from.contiguous && !job.reports) source.type->leave(source.use, source.count);
    return ends_in_host || remote || source.bytes < job.from.contiguous ? How::host : How::offered;
  }
  How how = How::packed;
  if (remote) {
    if (!ends_in_host && source.bytes >= job.from.inter_node) how = How::chunked;
  } else {
    // A job with more ranks than CPUs carries out every send as one that is not waited for.
    const MpiUse use = job.crowded ? MpiUse::later : source.use;
    source.why = Why::host_is_fast;
    const Type& type = *source.type.get();
    static_assert(Descriptor::kBytes < guide::MpiPrices::kLeastBytes);  // so packing them is none of the ways, too
    const bool is_short = source.bytes <= Descriptor::kBytes;
    if (ends_in_host || is_short) {
      if (job.ways.packs(use, type, source.count, source.distance)) return fitting(source);
      if (is_short) job.ways.leave(source.use, type, source.count);  // no other way is possible
      return How::host;
    }
    const bool tries = once && !job.ways.rests();
    const MpiWay way = tries
                           ? job.ways.start({.use = use, .to = source.to.local, .distance = source.distance}, type, source.count, job.types)
                           : job.ways.choose(use, type, source.count, source.distance);
    if (way == MpiWay::host && !tries) job.ways.leave(source.use, type, source.count, source.distance, use);
    if (way == MpiWay::host) return How::host;
    if (way == MpiWay::offered) how = How::offered;
  }
  return how == How::packed ? fitting(source) : how;
}

How plan(Job& job, const void* base, Count count, Datatype type, int dest, Comm comm, SendMode mode, bool once, Source& source,
         int& wrong) {
  source.why = Why::no_data;
  if (count <= 0 || dest < 0 || job.mode != Mode::full) return How::host;
  bool early = false;
  source.why = Why::first_use;
  source.type = job.types.of_message(type, once ? count : Types::kDecode, comm, early, wrong);
  if (wrong != kSuccess) return How::wrong;
  if (early) return How::host;
  source.to = job.comms->place(comm, dest);
  source.why = source.to.known() ? Why::undecodable : Why::not_reached;
  source.distance = job.distance_of(source.to);
  if (!source.to.known() || source.type == nullptr) return How::host;
  source.bytes = source.type->bytes(count);
  source.base = static_cast<const std::byte*>(base);
  source.count = count;
  source.handle = type;
  source.dest = dest;
  source.why = source.bytes < 0 ? Why::in_error : Why::no_data;
  if (source.bytes <= 0 || (base == nullptr && !source.type->absolute())) return How::host;
  const How how = way_of(job, source, mode, once);
  if (how == How::host) return how;
  source.why = Why::undecodable;
  if (on_device(*source.type.get(), base, count)) {
    source.why = Why::device_memory;
    return How::host;
  }
  base::Result<Elements> layout = source.type->of(count);
  if (!layout) return How::host;
  // If it cannot be so after all.
  source.why = how == How::packed ? Why::no_memory : how == How::chunked ? Why::on_the_way : Why::no_room;
  source.layout = std::move(*layout);
  return how;
}

}  // namespace

How plan_send(Job& job, const void* base, Count count, Datatype type, int dest, Comm comm, SendMode mode, bool once, Source& source,
              int& wrong) {
  try {
    return plan(job, base, count, type, dest, comm, mode, once, source, wrong);
  } catch (const std::bad_alloc&) {
    source.why = Why::no_memory;
    return How::host;
  }
}

}  // namespace lacuna::mpi
