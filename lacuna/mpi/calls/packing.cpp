// MPI_Pack and MPI_Unpack. The packed form is the host's: the bytes in typemap order, without anything in front, on
// machines that are all alike.
#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

// The layout, if the call is right as far as it can be seen here, and all fits; else the host says what is wrong.
Use fitting(Job& j, Count count, Datatype type, Count size, Count position, Comm comm, std::int64_t& bytes, Why& why) {
  why = count == 0 ? Why::no_data : Why::in_error;
  if (count <= 0 || position < 0 || size < position || comm == host().no_comm) return nullptr;
  bool early = false;
  Use found = j.types.find(type, count, early);
  why = early ? Why::first_use : Why::undecodable;
  if (found == nullptr) return nullptr;
  bytes = found->bytes(count);
  why = bytes == 0 ? Why::no_data : Why::in_error;
  return bytes > 0 && bytes <= size - position ? found : nullptr;
}

// Either call: `move` is the copy, `stream` the bytes that *position counts.
template <class Number, class Pass, class Move>
int convert(Function function, MessageReport::Way way, const void* base, Count count, Datatype type, const void* stream, Number size,
            Number* position, Comm comm, const Pass& pass, const Move& move) {
  Job* const j = job;
  if (j == nullptr || position == nullptr || stream == nullptr) return passed(j, function, Why::in_error, pass);
  std::int64_t bytes = 0;
  Why why{};
  const Use of = fitting(*j, count, type, size, *position, comm, bytes, why);
  if (of == nullptr || (base == nullptr && !of->absolute())) return passed(j, function, why, pass);
  if (of->contiguous(count)) return passed(j, function, Why::contiguous, pass);
  if (has_devices() && (on_device(stream) || on_device(*of.get(), base, count))) return passed(j, function, Why::device_memory, pass);
  const base::Result<Elements> layout = of->of(count);
  if (!layout) return passed(j, function, Why::undecodable, pass);
  const bool timed = j->report.on();
  if (timed && j->report.samples(of.get(), count, -1, way)) {
    const Number at = *position;
    const std::int64_t start = base::now_ns();
    const int result = pass();
    j->report.sampled(of.get(), count, -1, way, base::now_ns() - start);
    if (result != kSuccess) return result;
    *position = at;
  }
  const std::int64_t start = timed ? base::now_ns() : 0;
  move(*layout, bytes);
  *position += static_cast<Number>(bytes);
  if (timed) j->report.count(way, of.get(), count, -1, bytes, base::now_ns() - start);
  return kSuccess;
}

template <class Number, class Pass>
int pack(Function function, const void* base, Number count, Datatype type, void* out, Number size, Number* position, Comm comm,
         const Pass& pass) {
  return convert(function, MessageReport::Way::pack, base, count, type, out, size, position, comm, pass,
                 [&](const Layout& layout, std::int64_t bytes) {
                   copy::pack(layout, static_cast<const std::byte*>(base), 0, bytes, static_cast<std::byte*>(out) + *position);
                 });
}

template <class Number, class Pass>
int unpack(Function function, const void* in, Number size, Number* position, void* base, Number count, Datatype type, Comm comm,
           const Pass& pass) {
  return convert(function, MessageReport::Way::unpack, base, count, type, in, size, position, comm, pass,
                 [&](const Layout& layout, std::int64_t bytes) {
                   copy::unpack(layout, static_cast<std::byte*>(base), 0, bytes, static_cast<const std::byte*>(in) + *position);
                 });
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types, and parts of names
#define PACKS(suffix, Number)                                                                                                            \
  LACUNA_MPI_CALL(Pack##suffix, (const void* base, Number count, Datatype type, void* out, Number size, Number* position, Comm comm)) {  \
    return pack(Function::Pack##suffix, base, count, type, out, size, position, comm,                                                    \
                [&] { return host().Pack##suffix(base, count, type, out, size, position, comm); });                                      \
  }                                                                                                                                      \
  LACUNA_MPI_CAUGHT                                                                                                                      \
  LACUNA_MPI_CALL(Unpack##suffix, (const void* in, Number size, Number* position, void* base, Number count, Datatype type, Comm comm)) { \
    return unpack(Function::Unpack##suffix, in, size, position, base, count, type, comm,                                                 \
                  [&] { return host().Unpack##suffix(in, size, position, base, count, type, comm); });                                   \
  }                                                                                                                                      \
  LACUNA_MPI_CAUGHT
PACKS(, int)
PACKS(_c, Count)

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lacuna::mpi
