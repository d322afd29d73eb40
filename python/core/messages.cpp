// Messages for Python: communicators and requests.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "ranks.hpp"

namespace lacuna::python {
namespace {

void bind_values(nb::module_& m) {
  nb::class_<Status>(m, "Status", "What became of a message.")
      .def_ro("source", &Status::source)
      .def_ro("tag", &Status::tag)
      .def_ro("bytes", &Status::bytes, "Of its data, packed.")
      .def("__repr__", [](const Status& status) {
        return "Status(source=" + std::to_string(status.source) + ", tag=" + std::to_string(status.tag) +
               ", bytes=" + std::to_string(status.bytes) + ")";
      });
  nb::class_<protocol::Exposed>(m, "Exposed", "Memory of a rank that others put to and get from. Can be pickled, and sent to them.")
      .def(nb::init<std::int32_t, std::uint32_t, std::int64_t>(), "rank"_a, "number"_a, "bytes"_a)
      .def_ro("rank", &protocol::Exposed::rank)
      .def_ro("number", &protocol::Exposed::number)
      .def_ro("bytes", &protocol::Exposed::bytes)
      .def("__eq__", [](const protocol::Exposed& a, const protocol::Exposed& b) { return a == b; })
      .def("__getstate__", [](const protocol::Exposed& e) { return nb::make_tuple(e.rank, e.number, e.bytes); })
      .def("__setstate__", [](protocol::Exposed& e, const std::tuple<std::int32_t, std::uint32_t, std::int64_t>& state) {
        new (&e) protocol::Exposed{std::get<0>(state), std::get<1>(state), std::get<2>(state)};
      });
  nb::class_<Pending>(m, "Pending", "A request, with the memory that it uses.").def_prop_ro("done", [](const Pending& pending) {
    return pending.request == nullptr;
  });
}

// A send or a receive, begun or as a whole.
template <auto how, bool sends>
auto message(Ranks& ranks, const nb::object& array, int peer, int tag, const std::optional<Layout>& layout, std::int64_t offset) {
  return (ranks.*how)(array, sends, peer, tag, layout, offset);
}

nb::class_<Ranks> bind_two_sided(nb::module_& m) {
  return nb::class_<Ranks>(m, "Ranks", "Processes that send one another messages; lacuna.Communicator wraps it.")
      .def(nb::init<const std::string&, int, int, const std::string&, double, const std::string&, std::int64_t, std::int64_t, bool,
                    const std::optional<std::string>&, const std::optional<std::string>&>(),
           "address"_a, "size"_a, "rank"_a, "secret"_a, "timeout"_a, "nic"_a, "eager_bytes"_a, "unexpected_bytes"_a, "progress_thread"_a,
           "registering"_a.none(), "learning"_a.none())
      .def("close", &Ranks::close)
      .def_prop_ro("rank", &Ranks::rank)
      .def_prop_ro("size", &Ranks::size)
      .def("send", message<&Ranks::run, true>, "array"_a, "dest"_a, "tag"_a, "layout"_a.none(), "offset"_a)
      .def("recv", message<&Ranks::run, false>, "array"_a, "source"_a, "tag"_a, "layout"_a.none(), "offset"_a)
      .def("isend", message<&Ranks::begin, true>, "array"_a, "dest"_a, "tag"_a, "layout"_a.none(), "offset"_a)
      .def("irecv", message<&Ranks::begin, false>, "array"_a, "source"_a, "tag"_a, "layout"_a.none(), "offset"_a)
      .def("test", &Ranks::test, "pending"_a)
      .def("wait", &Ranks::wait, "pending"_a)
      .def("wait_any", nb::overload_cast<const std::vector<std::shared_ptr<Pending>>&>(&Ranks::wait_any), "pending"_a)
      .def("cancel", &Ranks::cancel, "pending"_a)
      .def("probe", &Ranks::probe, "source"_a, "tag"_a)
      .def("progress", &Ranks::progress)
      .def("statistics", &Ranks::statistics)
      .def("explain", &Ranks::explain, "send"_a, "receive"_a, "dest"_a);
}

void bind_one_sided(nb::class_<Ranks>& ranks) {
  ranks
      .def(
          "put",
          [](Ranks& ranks, const nb::object& array, const protocol::Exposed& to, std::int64_t offset, const std::optional<Layout>& layout) {
            return ranks.access(array, false, to, offset, layout);
          },
          "array"_a, "to"_a, "offset"_a, "layout"_a.none())
      .def(
          "get",
          [](Ranks& ranks, const nb::object& array, const protocol::Exposed& source, std::int64_t offset,
             const std::optional<Layout>& layout) { return ranks.access(array, true, source, offset, layout); },
          "array"_a, "source"_a, "offset"_a, "layout"_a.none())
      .def(
          "expose", [](Ranks& ranks, const nb::object& array) { return ranks.expose(array); }, "array"_a)
      .def(
          "register_memory", [](Ranks& ranks, const nb::object& array) { return ranks.register_memory(array); }, "array"_a)
      .def("deregister_memory", &Ranks::deregister_memory, "number"_a)
      .def("withdraw", &Ranks::withdraw, "exposed"_a);
}

}  // namespace

void bind_messages(nb::module_& m) {
  bind_values(m);
  nb::class_<Ranks> ranks = bind_two_sided(m);
  bind_one_sided(ranks);
}

}  // namespace lacuna::python
