// lacuna._core: layouts and the CPU's copies for Python. Errors become ValueError, OverflowError or MemoryError with
// Lacuna's message.
#include "core.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "array.hpp"
#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/layout/layout.hpp"
#include "tools/corpus/cases.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::python {
namespace {

using layout::Layout;

std::tuple<Layout, Layout, std::string> ddtbench(const std::string& family, int size) {
  corpus::Case found = value_or_raise(corpus::ddtbench_case(family, size));
  return {std::move(found.send), std::move(found.receive), found.name.substr(family.size() + 1)};
}

// Raises ValueError if a byte is in both.
void check_apart(const Array& target, const Array& source) {
  const Array::Bounds a = source.bounds();
  const Array::Bounds b = target.bounds();
  if (source.data() + a.low >= target.data() + b.high || target.data() + b.low >= source.data() + a.high) return;
  const std::int64_t distance = target.data() - source.data();
  if (!value_or_raise(layout::share_bytes(source.elements(), target.elements(), distance))) return;
  const std::string text = "the two views overlap in memory: the target begins " + std::to_string(distance) +
                           " bytes from the source, and some bytes are in both; copy from a copy of the source (source.copy())";
  throw nb::value_error(text.c_str());
}

// Whether each loop of an array steps over all that the shorter steps reach: then no byte has two names. If not, it may
// be so all the same.
bool steps_over_itself(const layout::StridedArray& array) {
  std::vector<std::pair<std::int64_t, std::int64_t>> loops;  // step, count
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    if (array.shape[i] > 1) loops.emplace_back(std::abs(array.strides[i]), array.shape[i]);
  }
  std::ranges::sort(loops);
  std::int64_t reach = array.item_bytes;
  for (const auto& [step, count] : loops) {
    if (step < reach) return false;
    reach += step * (count - 1);
  }
  return true;
}

std::int64_t bytes_of(const layout::StridedArray& array) {
  std::int64_t bytes = array.item_bytes;
  for (const std::int64_t count : array.shape) bytes *= count;
  return bytes;
}

void copy_array(const nb::handle& target, const nb::handle& source, bool as_bytes, int threads) {
  Array from(source, false, "source");
  Array to(target, true, "target");
  if (!as_bytes) Array::check_same_elements(to, from);
  threads = useful_threads(threads, bytes_of(to.elements()));
  if (const auto a = from.elements(), b = to.elements(); a.item_bytes == b.item_bytes && std::ranges::equal(a.shape, b.shape)) {
    if (threads == 1 && steps_over_itself(b)) {
      check_apart(to, from);
      const nb::gil_scoped_release unlocked;
      (void)copy::move_array(a, from.data(), b, to.data());
      return;
    }
  }
  const Layout& read = from.layout();  // before the lock is given up, since it may raise
  const Layout& written = to.layout();
  if (value_or_raise(written.overlaps()))
    throw nb::value_error("the target view names some bytes twice: which of its values they get is not defined");
  check_apart(to, from);
  const auto moved = [&] {
    const nb::gil_scoped_release unlocked;
    return threads == 1 ? copy::transpack(read, from.data(), written, to.data())
                        : copy::Team(threads).transpack(read, from.data(), written, to.data());
  }();
  value_or_raise(moved);
}

nb::tuple memory_of(const nb::handle& object, const char* role) {
  const Array array(object, false, role);
  const layout::StridedArray elements = array.elements();
  const auto as_tuple = [](std::span<const std::int64_t> numbers) {
    nb::list list;
    for (const std::int64_t number : numbers) list.append(number);
    return nb::tuple(list);
  };
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), elements.item_bytes, as_tuple(elements.shape),
                        as_tuple(elements.strides));
}

// Where a layout lies in an array, for copy_layouts().
struct Side {
  const nb::handle& array;
  const std::optional<Layout>& layout;
  std::int64_t offset;
};

// Raises ValueError if a byte is in both. Layouts whose spans are apart share none; only others are looked at closely.
void check_apart(const Layout& read, const std::byte* from, const Layout& written, const std::byte* to) {
  const std::byte* const first = from + read.true_lower_bound();
  const std::byte* const other = to + written.true_lower_bound();
  if (first >= other + written.true_extent() || other >= first + read.true_extent()) return;
  const std::int64_t lengths[] = {1, 1};
  const std::int64_t places[] = {0, to - from};
  const Layout members[] = {read, written};
  if (!value_or_raise(value_or_raise(Layout::structure(lengths, places, members)).overlaps())) return;
  throw nb::value_error("the two layouts overlap in memory: some bytes are in both; copy from a copy of the source (source.copy())");
}

void copy_layouts(const Side& target, const Side& source, int threads) {
  Array from(source.array, false, "source");
  Array to(target.array, true, "target");
  const std::byte* const read_base = from.base(source.layout, source.offset);
  std::byte* const written_base = to.base(target.layout, target.offset);
  const Layout& read = from.layout();
  const Layout& written = to.layout();
  value_or_raise(layout::check_sizes(read, written));
  threads = useful_threads(threads, written.size());
  if (value_or_raise(written.overlaps()))
    throw nb::value_error("the target's layout names some bytes twice: which of the source's values they get is not defined");
  check_apart(read, read_base, written, written_base);
  const auto moved = [&] {
    const nb::gil_scoped_release unlocked;
    return threads == 1 ? copy::transpack(read, read_base, written, written_base)
                        : copy::Team(threads).transpack(read, read_base, written, written_base);
  }();
  value_or_raise(moved);
}

}  // namespace
}  // namespace lacuna::python

NB_MODULE(_core, m) {
  using namespace lacuna::python;
  m.attr("__version__") = std::string(lacuna::base::version());
  bind_layout(m);
  m.def("copy", &copy_array, "target"_a.none(), "source"_a.none(), "as_bytes"_a = false, "threads"_a = 1,
        "lacuna.copy() of two arrays of the host.");
  m.def(
      "copy_layouts",
      [](const nb::handle& target, const std::optional<Layout>& written, std::int64_t to, const nb::handle& source,
         const std::optional<Layout>& read, std::int64_t from,
         int threads) { copy_layouts({target, written, to}, {source, read, from}, threads); },
      "target"_a.none(), "target_layout"_a.none(), "target_offset"_a, "source"_a.none(), "source_layout"_a.none(), "source_offset"_a,
      "threads"_a = 1, "lacuna.copy() of layouts in two arrays of the host.");
  m.def("memory_of", &memory_of, "array"_a.none(), "role"_a = "array",
        "Of an array of the host: the address of its first element, bytes of an element, the shape, and the strides in bytes.",
        nb::sig("def memory_of(array: object, role: str = 'array') -> tuple[int, int, tuple[int, ...], tuple[int, ...]]"));
  m.def("has_host_buffer", &has_host_buffer, "object"_a.none(),
        "Whether an object has the buffer protocol, and is of no type that may be on a GPU.");
  m.def("instruction_set", &lacuna::copy::instruction_set, "The instruction set that the kernels use on this CPU, by Highway's name.");
  bind_guide(m);
  bind_message_ways(m);
  bind_mpi_ways(m);
  bind_messages(m);
  bind_policies(m);
  bind_exchanges(m);
  bind_scale(m);
  bind_device(m);
  m.def("ddtbench_families", &lacuna::corpus::ddtbench_families, "The families of DDTBench layouts.");
  m.def("ddtbench_sizes", &lacuna::corpus::ddtbench_sizes, "family"_a, "How many sizes a family has; 0 if there is no such family.");
  m.def("ddtbench", &ddtbench, "family"_a, "size"_a, "What is sent, where it is received, and the size as the benchmark gives it.");
}
