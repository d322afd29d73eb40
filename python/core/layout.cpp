// lacuna.Layout: constructors, what there is to know of a layout, pack and unpack.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "array.hpp"
#include "integers.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::python {
namespace {

using layout::Layout;

layout::Order order_of(const std::string& name) {
  if (name == "C") return layout::Order::c;
  if (name == "F") return layout::Order::fortran;
  throw nb::value_error("order must be \"C\" or \"F\"");
}

layout::Distribution distribution_of(const std::string& name) {
  if (name == "none") return layout::Distribution::none;
  if (name == "block") return layout::Distribution::block;
  if (name == "cyclic") return layout::Distribution::cyclic;
  throw nb::value_error("a distribution must be \"none\", \"block\" or \"cyclic\"");
}

// Raises ValueError if packed bytes are not as many as the layout's, or have gaps.
void check_packed(Array& packed, const Layout& layout, const char* what) {
  if (packed.layout().size() == layout.size() && packed.layout().contiguous_bytes()) return;
  const std::string text = std::string("the ") + what + " must be contiguous and hold exactly the layout's size, " +
                           std::to_string(layout.size()) + " bytes; it has " + std::to_string(packed.layout().size()) + " in " +
                           std::to_string(packed.layout().run_count()) + " runs";
  throw nb::value_error(text.c_str());
}

// Raises ValueError if packed bytes lie where the layout does.
void check_apart(const Layout& layout, const std::byte* base, const std::byte* packed) {
  const std::byte* const first = base + layout.true_lower_bound();
  if (packed >= first + layout.true_extent() || first >= packed + layout.size()) return;
  throw nb::value_error(
      "the packed bytes overlap what the layout covers of the buffer, from its first byte to its last: they need memory of their own");
}

void pack_to(const Layout& layout, const std::byte* base, int threads, std::byte* out) {
  const nb::gil_scoped_release unlocked;
  if (threads == 1) {
    copy::pack(layout, base, 0, layout.size(), out);
  } else {
    copy::Team(threads).pack(layout, base, 0, layout.size(), out);
  }
}

nb::bytes pack(const Layout& layout, const nb::handle& source, std::int64_t offset, int threads) {
  threads = useful_threads(threads, layout.size());
  const Array from(source, false, "buffer");
  const std::byte* base = from.base_of(layout, offset);
  nb::bytes out(nullptr, static_cast<std::size_t>(layout.size()));
  pack_to(layout, base, threads, reinterpret_cast<std::byte*>(PyBytes_AsString(out.ptr())));
  return out;
}

nb::object pack_out(const Layout& layout, const nb::handle& source, std::int64_t offset, int threads, const nb::handle& out) {
  if (out.is_none()) return pack(layout, source, offset, threads);
  threads = useful_threads(threads, layout.size());
  const Array from(source, false, "buffer");
  const std::byte* base = from.base_of(layout, offset);
  Array to(out, true, "output");
  check_packed(to, layout, "output");
  check_apart(layout, base, to.data());
  pack_to(layout, base, threads, to.data());
  return nb::borrow(out);
}

void unpack(const Layout& layout, const nb::handle& packed, const nb::handle& target, std::int64_t offset, int threads) {
  threads = useful_threads(threads, layout.size());
  if (value_or_raise(layout.overlaps()))
    throw nb::value_error("the layout names some bytes twice: which of the packed values they get is not defined");
  Array from(packed, false, "packed buffer");
  const Array to(target, true, "buffer");
  check_packed(from, layout, "packed buffer");
  std::byte* base = to.base_of(layout, offset);
  const nb::gil_scoped_release unlocked;
  if (threads == 1) {
    copy::unpack(layout, base, 0, layout.size(), from.data());
  } else {
    copy::Team(threads).unpack(layout, base, 0, layout.size(), from.data());
  }
}

std::vector<std::int64_t> length_classes(const Layout& layout, std::int64_t limit) {
  std::vector<std::int64_t> classes;
  for (layout::Cursor cursor(layout); !cursor.done() && limit > 0; --limit) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    const auto index = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(run.length)) - 1);
    if (index >= classes.size()) classes.resize(index + 1);
    ++classes[index];
  }
  return classes;
}

// Of an array of the host, or one of GPU memory.
Layout layout_of(const nb::handle& array) {
  if (!has_host_buffer(array)) {
    const nb::module_ device = nb::module_::import_("lacuna.device");
    if (nb::cast<bool>(device.attr("is_device_array")(array))) return nb::cast<Layout>(device.attr("view_of")(array).attr("layout"));
  }
  return Array(array, false).layout();
}

nb::list runs(const Layout& layout, std::int64_t limit) {
  nb::list list;
  for (layout::Cursor cursor(layout); !cursor.done() && limit > 0; --limit) {
    const layout::Run run = cursor.next_run(layout::kMaxBytes);
    list.append(nb::make_tuple(run.offset, run.length));
  }
  return list;
}

void bind_regular(nb::class_<Layout>& c) {
  c.def_static(
       "bytes", [](std::int64_t count) { return value_or_raise(Layout::bytes(count)); }, "count"_a, "`count` contiguous bytes.")
      .def_static(
          "contiguous", [](std::int64_t count, const Layout& old) { return value_or_raise(Layout::contiguous(count, old)); }, "count"_a,
          "old"_a, "MPI_Type_contiguous: `count` of `old`, an extent apart.")
      .def_static(
          "vector",
          [](std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
            return value_or_raise(Layout::vector(count, blocklength, stride, old));
          },
          "count"_a, "blocklength"_a, "stride"_a, "old"_a,
          "MPI_Type_vector: `count` blocks of `blocklength` times `old`; the stride counts extents of `old`.")
      .def_static(
          "hvector",
          [](std::int64_t count, std::int64_t blocklength, std::int64_t stride, const Layout& old) {
            return value_or_raise(Layout::hvector(count, blocklength, stride, old));
          },
          "count"_a, "blocklength"_a, "stride_bytes"_a, "old"_a, "MPI_Type_create_hvector: vector() with the stride in bytes.")
      .def_static(
          "subarray",
          [](const GivenIntegers& sizes, const GivenIntegers& subsizes, const GivenIntegers& starts, const Layout& old,
             const std::string& order) {
            return value_or_raise(Layout::subarray(Integers(sizes, "sizes"), Integers(subsizes, "subsizes"), Integers(starts, "starts"),
                                                   order_of(order), old));
          },
          "sizes"_a, "subsizes"_a, "starts"_a, "old"_a, "order"_a = "C",
          "MPI_Type_create_subarray: a box of `subsizes` elements at `starts` in an array of `sizes`, all counted in `old`, an entry for "
          "each "
          "dimension. `order`: \"C\", the last index is the fastest, or \"F\".")
      .def_static(
          "darray",
          [](std::int64_t processes, std::int64_t rank, const GivenIntegers& sizes, const std::vector<std::string>& distributions,
             const GivenIntegers& blocks, const GivenIntegers& grid, const Layout& old, const std::string& order) {
            std::vector<layout::Distribution> kinds;
            for (const std::string& name : distributions) kinds.push_back(distribution_of(name));
            return value_or_raise(Layout::darray(processes, rank, Integers(sizes, "sizes"), kinds, Integers(blocks, "block_sizes"),
                                                 Integers(grid, "grid"), order_of(order), old));
          },
          "processes"_a, "rank"_a, "sizes"_a, "distributions"_a, "block_sizes"_a, "grid"_a, "old"_a, "order"_a = "C",
          "MPI_Type_create_darray. Distributions are \"none\", \"block\" or \"cyclic\"; a block size of -1 is MPI_DISTRIBUTE_DFLT_DARG.")
      .def_static(
          "resized",
          [](const Layout& old, std::int64_t lower, std::int64_t extent) { return value_or_raise(Layout::resized(old, lower, extent)); },
          "old"_a, "lower_bound"_a, "extent"_a, "MPI_Type_create_resized: the same bytes, with other bounds (in bytes).")
      .def_static(
          "strided",
          [](std::int64_t item, const GivenIntegers& shape, const GivenIntegers& strides) {
            return value_or_raise(Layout::strided(item, Integers(shape, "shape"), Integers(strides, "strides")));
          },
          "item_bytes"_a, "shape"_a, "strides"_a,
          "The elements of a strided array in index order, the last index fastest; strides in bytes.");
}

void bind_lists(nb::class_<Layout>& c) {
  c.def_static(
       "indexed",
       [](const GivenIntegers& lengths, const GivenIntegers& displacements, const Layout& old) {
         return value_or_raise(Layout::indexed(Integers(lengths, "blocklengths"), Integers(displacements, "displacements"), old));
       },
       "blocklengths"_a, "displacements"_a, "old"_a,
       "MPI_Type_indexed: blocklengths[i] of `old` at displacements[i], which count extents of `old`. Lists as in paged().")
      .def_static(
          "hindexed",
          [](const GivenIntegers& lengths, const GivenIntegers& displacements, const Layout& old) {
            return value_or_raise(Layout::hindexed(Integers(lengths, "blocklengths"), Integers(displacements, "byte_displacements"), old));
          },
          "blocklengths"_a, "byte_displacements"_a, "old"_a, "MPI_Type_create_hindexed: indexed() with displacements in bytes.")
      .def_static(
          "indexed_block",
          [](std::int64_t length, const GivenIntegers& displacements, const Layout& old) {
            return value_or_raise(Layout::indexed_block(length, Integers(displacements, "displacements"), old));
          },
          "blocklength"_a, "displacements"_a, "old"_a,
          "MPI_Type_create_indexed_block: `blocklength` of `old` at each of the displacements, which count extents of `old`. Lists as in "
          "paged().")
      .def_static(
          "hindexed_block",
          [](std::int64_t length, const GivenIntegers& displacements, const Layout& old) {
            return value_or_raise(Layout::hindexed_block(length, Integers(displacements, "byte_displacements"), old));
          },
          "blocklength"_a, "byte_displacements"_a, "old"_a, "MPI_Type_create_hindexed_block: indexed_block() with displacements in bytes.")
      .def_static(
          "struct",
          [](const GivenIntegers& lengths, const GivenIntegers& displacements, const std::vector<Layout>& members) {
            return value_or_raise(
                Layout::structure(Integers(lengths, "blocklengths"), Integers(displacements, "byte_displacements"), members));
          },
          "blocklengths"_a, "byte_displacements"_a, "members"_a,
          "MPI_Type_create_struct: blocklengths[i] of members[i] at byte_displacements[i].")
      .def_static(
          "blocks",
          [](const GivenIntegers& offsets, const GivenIntegers& lengths) {
            return value_or_raise(Layout::blocks(Integers(offsets, "offsets"), Integers(lengths, "lengths")));
          },
          "offsets"_a, "lengths"_a, "`lengths[i]` bytes at `offsets[i]` bytes, in this order. Lists as in paged().")
      .def_static(
          "paged",
          [](std::int64_t block, const GivenIntegers& pages) {
            return value_or_raise(Layout::paged(block, Integers(pages, "page_numbers")));
          },
          "block_bytes"_a, "page_numbers"_a,
          "Blocks of `block_bytes` at `page_numbers[i] * block_bytes`, in this order.\n\n"
          "A list of integers is any sequence, or an array of one dimension and of any integer type (NumPy, array.array, a tensor of the "
          "host): its memory is read, which is fastest for int64 without gaps. Raises ValueError (a negative length, lists of different "
          "lengths, "
          "an array of more dimensions), OverflowError (a number beyond 64 bits, an offset beyond 2^60 bytes), TypeError (no integers).");
}

void bind_wire(nb::class_<Layout>& c) {
  c.def_static(
       "from_wire",
       [](const nb::bytes& wire) {
         return value_or_raise(layout::decode({reinterpret_cast<const std::byte*>(wire.c_str()), wire.size()}));
       },
       "wire"_a, "The inverse of wire(), for bytes from anywhere. Raises ValueError (malformed).")
      .def(
          "wire",
          [](const Layout& layout) {
            const std::vector<std::byte> wire = layout::encode(layout);
            return nb::bytes(wire.data(), wire.size());
          },
          "A few bytes that describe the layout to a peer.");
}

void bind_copies(nb::class_<Layout>& c) {
  c.def_static("of", &layout_of, "array"_a.none(),
               "The elements of an array or view, in index order, relative to its first element's address: of whatever has the buffer "
               "protocol (NumPy, bytes, array.array), DLPack in memory of the host, or GPU memory. Raises TypeError for an array of Python "
               "objects, and for what is no array.")
      .def("pack", &pack, "buffer"_a.none(), "offset"_a = 0, "threads"_a = 1,
           "The layout's bytes of `buffer`, packed, whatever the type of its elements. The layout's base is `offset` bytes from the "
           "buffer's first element. More `threads` take part from some 256 KiB each.\n\n"
           "Raises ValueError if the layout reaches beyond the buffer, TypeError for Python objects, for memory of a GPU "
           "(lacuna.device.pack() takes it), and for what is no array.")
      .def("pack", &pack_out, "buffer"_a.none(), "offset"_a = 0, "threads"_a = 1, nb::kw_only(), "out"_a.none(),
           "The same into `out`, which is returned: an array of the host of exactly `size` bytes without gaps. Nothing is allocated.\n\n"
           "Raises ValueError if `out` has another size, has gaps or lies within what the layout covers; ValueError or BufferError, as its "
           "type does, if it is read-only.")
      .def("unpack", &unpack, "packed"_a.none(), "buffer"_a.none(), "offset"_a = 0, "threads"_a = 1,
           "Writes packed bytes, `size` of them without gaps, to the layout's places in `buffer`, and nowhere else: the inverse of pack(). "
           "They are read where they are. More `threads` take part from some 256 KiB each.\n\n"
           "Raises as pack(); ValueError or BufferError, as the buffer's type does, if it is read-only; ValueError if packed bytes are too "
           "many or too few, or if the layout names bytes twice.");
}

void bind_properties(nb::class_<Layout>& c) {
  c.def("runs", &runs, "limit"_a = 1'000'000, "The first `limit` contiguous runs as (offset, length) in bytes, in order.")
      .def("length_classes", &length_classes, "limit"_a = 1'000'000,
           "Of the first `limit` runs: how many have 1 byte, 2 to 3, 4 to 7 and so on, up to the longest.")
      .def("describe", &Layout::describe, "The canonical form as text: 8 x +64 B { 8 B }.")
      .def("kernels", &copy::describe_kernels, "The steps of a copy with the kernel of each, a line each.")
      .def_prop_ro("size", &Layout::size, "Bytes of data: of all runs together.")
      .def_prop_ro("run_count", &Layout::run_count, "Contiguous runs; neighbours in order that touch are one.")
      .def_prop_ro("lower_bound", &Layout::lower_bound, "In bytes, as MPI has it.")
      .def_prop_ro("extent", &Layout::extent, "Bytes from one of several to the next, as MPI has it.")
      .def_prop_ro("true_lower_bound", &Layout::true_lower_bound, "Where the lowest byte is, from the base.")
      .def_prop_ro("true_extent", &Layout::true_extent, "Bytes from the lowest to the highest, both included.")
      .def_prop_ro(
          "overlaps", [](const Layout& layout) { return value_or_raise(layout.overlaps()); }, "Whether some byte is named twice.")
      .def(
          "__eq__",
          [](const Layout& a, const nb::object& b) { return nb::isinstance<Layout>(b) && a.same_runs(nb::cast<const Layout&>(b)); },
          nb::is_operator(), "other"_a, "Whether both name the same bytes in the same order; bounds have no part in it.")
      .def("__hash__", [](const Layout& layout) { return static_cast<Py_hash_t>(layout.digest().low >> 1); })
      .def("__repr__", [](const Layout& layout) {
        return "<lacuna.Layout of " + std::to_string(layout.size()) + " bytes: " + layout.describe() + ">";
      });
}

}  // namespace

void bind_layout(nb::module_& m) {
  nb::class_<Layout> c(
      m, "Layout",
      "Which bytes, in which order, relative to a base address. Immutable. Sizes, strides and displacements are in bytes "
      "where not said otherwise. Bytes have no type: a layout packs and unpacks arrays of any elements but Python objects.");
  c.def(nb::init<>(), "The empty layout.");
  bind_regular(c);
  bind_lists(c);
  bind_wire(c);
  bind_copies(c);
  bind_properties(c);
}

}  // namespace lacuna::python
