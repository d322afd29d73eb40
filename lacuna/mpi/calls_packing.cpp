// MPI_Pack and MPI_Unpack. The packed form is the host's: the bytes in typemap order, without anything in front, on machines that are all alike.
#include "lacuna/mpi/calls.hpp"

namespace lacuna::mpi {
namespace {

// The layout, if the call is right as far as it can be seen here, and all fits; else the host says what is wrong.
Use fitting(Job& j, Count count, Datatype type, Count size, Count position, Comm comm, std::int64_t& bytes) {
  if (count <= 0 || position < 0 || size < position || comm == host().no_comm) return nullptr;
  Use found = j.types.find(type, count);
  if (found == nullptr) return nullptr;
  bytes = found->bytes(count);
  return bytes > 0 && bytes <= size - position ? found : nullptr;
}

// Either call: `move` is the copy, `packed` the bytes that *position counts.
template <class Number, class Pass, class Move>
int convert(Report::Way way, const void* base, Count count, Datatype type, const void* packed, Number size, Number* position, Comm comm,
            const Pass& pass, const Move& move) {
  Job* const j = job;
  if (j == nullptr || position == nullptr || packed == nullptr) return pass();
  std::int64_t bytes = 0;
  const Use of = fitting(*j, count, type, size, *position, comm, bytes);
  if (of == nullptr || of->contiguous(count) || (base == nullptr && !of->absolute())) return pass();
  if (has_devices() && (on_device(packed) || on_device(*of.get(), base, count))) {
    j->report.passed(kOnDevice);
    return pass();
  }
  const base::Result<Elements> layout = of->of(count);
  if (!layout) return pass();
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
int pack(const void* base, Number count, Datatype type, void* out, Number size, Number* position, Comm comm, const Pass& pass) {
  return convert(Report::Way::pack, base, count, type, out, size, position, comm, pass, [&](const Layout& layout, std::int64_t bytes) {
    copy::pack(layout, static_cast<const std::byte*>(base), 0, bytes, static_cast<std::byte*>(out) + *position);
  });
}

template <class Number, class Pass>
int unpack(const void* in, Number size, Number* position, void* base, Number count, Datatype type, Comm comm, const Pass& pass) {
  return convert(Report::Way::unpack, base, count, type, in, size, position, comm, pass, [&](const Layout& layout, std::int64_t bytes) {
    copy::unpack(layout, static_cast<std::byte*>(base), 0, bytes, static_cast<const std::byte*>(in) + *position);
  });
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types, and parts of names
#define PACKS(suffix, Number)                                                                                                            \
  LACUNA_MPI_CALL(Pack##suffix, (const void* base, Number count, Datatype type, void* out, Number size, Number* position, Comm comm)) {  \
    return pack(base, count, type, out, size, position, comm,                                                                            \
                [&] { return host().Pack##suffix(base, count, type, out, size, position, comm); });                                      \
  }                                                                                                                                      \
  LACUNA_MPI_CAUGHT                                                                                                                      \
  LACUNA_MPI_CALL(Unpack##suffix, (const void* in, Number size, Number* position, void* base, Number count, Datatype type, Comm comm)) { \
    return unpack(in, size, position, base, count, type, comm,                                                                           \
                  [&] { return host().Unpack##suffix(in, size, position, base, count, type, comm); });                                   \
  }                                                                                                                                      \
  LACUNA_MPI_CAUGHT
PACKS(, int)
PACKS(_c, Count)

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lacuna::mpi
