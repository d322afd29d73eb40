// lacuna._core: layouts and the CPU's copies for Python. Errors become ValueError, OverflowError or MemoryError with Lacuna's message.
#include "_buffer.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "lacuna/base/base.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/guide/guide.hpp"
#include "lacuna/layout/layout.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using lacuna::layout::Layout;
using lacuna::layout::Order;
using lacuna::python::Bytes;
using lacuna::python::value_or_raise;
using Ints = std::vector<std::int64_t>;

namespace {

Order order_of(const std::string& name) {
  if (name == "C") return Order::c;
  if (name == "F") return Order::fortran;
  throw nb::value_error("order must be \"C\" or \"F\"");
}

lacuna::layout::Distribution distribution_of(const std::string& name) {
  if (name == "none") return lacuna::layout::Distribution::none;
  if (name == "block") return lacuna::layout::Distribution::block;
  if (name == "cyclic") return lacuna::layout::Distribution::cyclic;
  throw nb::value_error("a distribution must be \"none\", \"block\" or \"cyclic\"");
}

void check_threads(int threads) {
  if (threads < 1 || threads > 1024) throw nb::value_error("threads must be between 1 and 1024");
}

// More threads than shares of 256 KiB would only wait.
int useful(int threads, std::int64_t bytes) { return static_cast<int>(std::min<std::int64_t>(threads, 1 + bytes / (256 << 10))); }

nb::bytes pack(const Layout& layout, const nb::handle& source, std::int64_t offset, int threads) {
  check_threads(threads);
  const Bytes bytes(source, false);
  const std::byte* base = bytes.base_of(layout, offset);
  nb::bytes out(nullptr, static_cast<std::size_t>(layout.size()));
  auto* to = reinterpret_cast<std::byte*>(PyBytes_AsString(out.ptr()));
  const nb::gil_scoped_release unlocked;
  if (threads == 1) {
    lacuna::copy::pack(layout, base, 0, layout.size(), to);
  } else {
    lacuna::copy::Team(useful(threads, layout.size())).pack(layout, base, 0, layout.size(), to);
  }
  return out;
}

void unpack(const Layout& layout, const nb::handle& packed, const nb::handle& target, std::int64_t offset, int threads) {
  check_threads(threads);
  if (threads > 1 && value_or_raise(layout.overlaps()))
    throw nb::value_error("the layout names some bytes twice: threads would write them in any order");
  const Bytes from(packed, false);
  const Bytes to(target, true);
  const Layout packed_layout = from.layout();
  if (packed_layout.size() != layout.size() || !packed_layout.contiguous_bytes())
    throw nb::value_error("the packed buffer must be contiguous and hold exactly the layout's size");
  std::byte* base = to.base_of(layout, offset);
  const nb::gil_scoped_release unlocked;
  if (threads == 1) {
    lacuna::copy::unpack(layout, base, 0, layout.size(), from.data());
  } else {
    lacuna::copy::Team(useful(threads, layout.size())).unpack(layout, base, 0, layout.size(), from.data());
  }
}

Ints length_classes(const Layout& layout, std::int64_t limit) {
  Ints classes;
  for (lacuna::layout::Cursor cursor(layout); !cursor.done() && limit > 0; --limit) {
    const lacuna::layout::Run run = cursor.next_run(lacuna::layout::kMaxBytes);
    const auto index = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(run.length)) - 1);
    if (index >= classes.size()) classes.resize(index + 1);
    ++classes[index];
  }
  return classes;
}

std::tuple<Layout, Layout, std::string> ddtbench(const std::string& family, int size) {
  lacuna::guide::Case found = value_or_raise(lacuna::guide::ddtbench_case(family, size));
  return {std::move(found.send), std::move(found.receive), found.name.substr(family.size() + 1)};
}

}  // namespace

namespace {

// Of a buffer of the host, or an array of GPU memory.
Layout layout_of(const nb::handle& array) {
  if (PyObject_CheckBuffer(array.ptr()) == 0) {
    const nb::module_ device = nb::module_::import_("lacuna.device");
    if (nb::cast<bool>(device.attr("is_device_array")(array))) return nb::cast<Layout>(device.attr("view_of")(array).attr("layout"));
  }
  return Bytes(array, false).layout();
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("__version__") = std::string(lacuna::base::version());
  nb::class_<Layout>(m, "Layout",
                     "Which bytes, in which order, relative to a base address. Immutable. Sizes, strides and displacements are in bytes "
                     "where not said otherwise.")
      .def(nb::init<>(), "The empty layout.")
      .def_static(
          "bytes", [](std::int64_t count) { return value_or_raise(Layout::bytes(count)); }, "count"_a, "`count` contiguous bytes.")
      .def_static(
          "contiguous", [](std::int64_t count, const Layout& old) { return value_or_raise(Layout::contiguous(count, old)); }, "count"_a,
          "old"_a)
      .def_static(
          "vector",
          [](std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
            return value_or_raise(Layout::vector(count, blocklength, stride, old));
          },
          "count"_a, "blocklength"_a, "stride"_a, "old"_a, "MPI_Type_vector: the stride counts extents of `old`.")
      .def_static(
          "hvector",
          [](std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
            return value_or_raise(Layout::hvector(count, blocklength, stride, old));
          },
          "count"_a, "blocklength"_a, "stride_bytes"_a, "old"_a)
      .def_static(
          "indexed",
          [](const Ints& lengths, const Ints& displacements, const Layout& old) {
            return value_or_raise(Layout::indexed(lengths, displacements, old));
          },
          "blocklengths"_a, "displacements"_a, "old"_a, "MPI_Type_indexed: displacements count extents of `old`.")
      .def_static(
          "hindexed",
          [](const Ints& lengths, const Ints& displacements, const Layout& old) {
            return value_or_raise(Layout::hindexed(lengths, displacements, old));
          },
          "blocklengths"_a, "byte_displacements"_a, "old"_a)
      .def_static(
          "indexed_block",
          [](std::int64_t length, const Ints& displacements, const Layout& old) {
            return value_or_raise(Layout::indexed_block(length, displacements, old));
          },
          "blocklength"_a, "displacements"_a, "old"_a)
      .def_static(
          "hindexed_block",
          [](std::int64_t length, const Ints& displacements, const Layout& old) {
            return value_or_raise(Layout::hindexed_block(length, displacements, old));
          },
          "blocklength"_a, "byte_displacements"_a, "old"_a)
      .def_static(
          "struct",
          [](const Ints& lengths, const Ints& displacements, const std::vector<Layout>& members) {
            return value_or_raise(Layout::structure(lengths, displacements, members));
          },
          "blocklengths"_a, "byte_displacements"_a, "members"_a)
      .def_static(
          "subarray",
          [](const Ints& sizes, const Ints& subsizes, const Ints& starts, const Layout& old, const std::string& order) {
            return value_or_raise(Layout::subarray(sizes, subsizes, starts, order_of(order), old));
          },
          "sizes"_a, "subsizes"_a, "starts"_a, "old"_a, "order"_a = "C")
      .def_static(
          "darray",
          [](std::int64_t processes, std::int64_t rank, const Ints& sizes, const std::vector<std::string>& distributions,
             const Ints& blocks, const Ints& grid, const Layout& old, const std::string& order) {
            std::vector<lacuna::layout::Distribution> kinds;
            for (const std::string& name : distributions) kinds.push_back(distribution_of(name));
            return value_or_raise(Layout::darray(processes, rank, sizes, kinds, blocks, grid, order_of(order), old));
          },
          "processes"_a, "rank"_a, "sizes"_a, "distributions"_a, "block_sizes"_a, "grid"_a, "old"_a, "order"_a = "C",
          "MPI_Type_create_darray. Distributions are \"none\", \"block\" or \"cyclic\"; a block size of -1 is MPI_DISTRIBUTE_DFLT_DARG.")
      .def_static(
          "resized",
          [](const Layout& old, std::int64_t lower, std::int64_t extent) { return value_or_raise(Layout::resized(old, lower, extent)); },
          "old"_a, "lower_bound"_a, "extent"_a)
      .def_static(
          "blocks", [](const Ints& offsets, const Ints& lengths) { return value_or_raise(Layout::blocks(offsets, lengths)); }, "offsets"_a,
          "lengths"_a, "`lengths[i]` bytes at `offsets[i]`.")
      .def_static(
          "paged", [](std::int64_t block, const Ints& pages) { return value_or_raise(Layout::paged(block, pages)); }, "block_bytes"_a,
          "page_numbers"_a, "Blocks of `block_bytes` at `page_numbers[i] * block_bytes`.")
      .def_static(
          "strided",
          [](std::int64_t item, const Ints& shape, const Ints& strides) { return value_or_raise(Layout::strided(item, shape, strides)); },
          "item_bytes"_a, "shape"_a, "strides"_a,
          "The elements of a strided array in index order, the last index fastest; strides in bytes.")
      .def_static(
          "of", &layout_of, "array"_a,
          "The elements of a NumPy array or view (anything with a buffer), in index order, relative to its first element's address.")
      .def_static(
          "from_wire",
          [](const nb::bytes& wire) {
            return value_or_raise(lacuna::layout::decode({reinterpret_cast<const std::byte*>(wire.c_str()), wire.size()}));
          },
          "wire"_a, "The inverse of wire(), for bytes from anywhere.")
      .def(
          "wire",
          [](const Layout& layout) {
            const std::vector<std::byte> wire = lacuna::layout::encode(layout);
            return nb::bytes(wire.data(), wire.size());
          },
          "A few bytes that describe the layout to a peer.")
      .def("pack", &pack, "buffer"_a, "offset"_a = 0, "threads"_a = 1,
           "The layout's bytes of `buffer`, packed. The layout's base is `offset` bytes from the buffer's first element. More `threads` "
           "take "
           "part from some 256 KiB each.")
      .def("unpack", &unpack, "packed"_a, "buffer"_a, "offset"_a = 0, "threads"_a = 1,
           "Writes packed bytes to the layout's places in `buffer`, and nowhere else. More `threads` take part from some 256 KiB each.")
      .def(
          "runs",
          [](const Layout& layout, std::int64_t limit) {
            lacuna::layout::Cursor cursor(layout);
            nb::list list;
            for (; !cursor.done() && limit > 0; --limit) {
              const lacuna::layout::Run run = cursor.next_run(lacuna::layout::kMaxBytes);
              list.append(nb::make_tuple(run.offset, run.length));
            }
            return list;
          },
          "limit"_a = 1'000'000, "The first `limit` contiguous runs as (offset, length), in order.")
      .def("length_classes", &length_classes, "limit"_a = 1'000'000,
           "Of the first `limit` runs: how many have 1 byte, 2 to 3, 4 to 7 and so on, up to the longest.")
      .def("describe", &Layout::describe, "The canonical form as text: 8 x +64 B { 8 B }.")
      .def("kernels", &lacuna::copy::describe_kernels, "The steps of a copy with the kernel of each, a line each.")
      .def_prop_ro("size", &Layout::size)
      .def_prop_ro("run_count", &Layout::run_count)
      .def_prop_ro("lower_bound", &Layout::lower_bound)
      .def_prop_ro("extent", &Layout::extent)
      .def_prop_ro("true_lower_bound", &Layout::true_lower_bound)
      .def_prop_ro("true_extent", &Layout::true_extent)
      .def_prop_ro("overlaps", [](const Layout& layout) { return value_or_raise(layout.overlaps()); })
      .def(
          "__eq__",
          [](const Layout& a, const nb::object& b) { return nb::isinstance<Layout>(b) && a.same_runs(nb::cast<const Layout&>(b)); },
          nb::is_operator(), "other"_a, "Whether both name the same bytes in the same order; bounds have no part in it.")
      .def("__hash__", [](const Layout& layout) { return static_cast<Py_hash_t>(layout.digest().low >> 1); })
      .def("__repr__", [](const Layout& layout) {
        return "<lacuna.Layout of " + std::to_string(layout.size()) + " bytes: " + layout.describe() + ">";
      });

  m.def(
      "copy",
      [](const nb::handle& target, const nb::handle& source) {
        const Bytes from(source, false);
        const Bytes to(target, true);
        const Layout src = from.layout();
        const Layout dst = to.layout();
        if (value_or_raise(dst.overlaps())) throw nb::value_error("the target view names some bytes twice");
        const Bytes::Bounds a = from.bounds();
        const Bytes::Bounds b = to.bounds();
        if (src.size() > 0 && from.data() + a.low < to.data() + b.high && to.data() + b.low < from.data() + a.high)
          throw nb::value_error("the two views overlap in memory");
        const auto moved = [&] {
          const nb::gil_scoped_release unlocked;
          return lacuna::copy::transpack(src, from.data(), dst, to.data());
        }();
        value_or_raise(moved);
      },
      "target"_a, "source"_a, "Copies one strided view into another of as many bytes, in index order, without staging.");
  m.def("instruction_set", &lacuna::copy::instruction_set, "The instruction set that the kernels use on this CPU, by Highway's name.");
  lacuna::python::bind_guide(m);
  lacuna::python::bind_messages(m);
  lacuna::python::bind_policies(m);
  lacuna::python::bind_exchanges(m);
  lacuna::python::bind_device(m);
  m.def("ddtbench_families", &lacuna::guide::ddtbench_families, "The families of DDTBench layouts.");
  m.def("ddtbench_sizes", &lacuna::guide::ddtbench_sizes, "family"_a, "How many sizes a family has; 0 if there is no such family.");
  m.def("ddtbench", &ddtbench, "family"_a, "size"_a, "What is sent, where it is received, and the size as the benchmark gives it.");
}
