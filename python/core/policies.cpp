// Messages between two ranks of the model, by one of the registration policies: what `lacuna paper` asks for S4.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core.hpp"
#include "lacuna/guide/mpi_ways.hpp"
#include "lacuna/nic/nic.hpp"
#include "lacuna/nic/world.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::python {
namespace {

using layout::Layout;

struct Unmap {
  std::size_t bytes;
  void operator()(void* memory) const { munmap(memory, bytes); }
};

// Pages that are there once they are touched.
Result<std::unique_ptr<std::byte, Unmap>> reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return base::fail(Code::out_of_memory, std::to_string(bytes) + " bytes");
  return std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(memory), Unmap{bytes});
}

Result<std::vector<double>> messages(const std::string& profile, const protocol::Options& options, std::int64_t bytes,
                                     const std::vector<std::int64_t>& buffers) {
  const auto world = LACUNA_TRY(nic::simulate({.profile = profile, .overrides = {}, .ranks = 2, .moves_bytes = true, .limits = {}}));
  const Layout all = LACUNA_TRY(Layout::bytes(bytes));
  const std::int64_t slot = (bytes + 8191) / 4096 * 4096;
  const auto count = static_cast<std::size_t>(2 * (*std::ranges::max_element(buffers) + 1));
  std::vector<double> times;
  LACUNA_TRY(world->run([&](int rank) -> Result<void> {
    nic::Context& context = world->context(rank);
    const auto ranks = LACUNA_TRY(protocol::Communicator::create(context, "model", protocol::form_group(*world, rank), options));
    const auto memory = LACUNA_TRY(reserve(count * static_cast<std::size_t>(slot)));
    for (const std::int64_t buffer : buffers) {
      std::byte* const there = memory.get() + 2 * buffer * slot;
      std::byte* const back = there + slot;
      const std::int64_t began = context.now();
      if (rank == 0) {
        LACUNA_TRY(ranks->send(there, all, 1, 0));
        LACUNA_TRY(ranks->recv(back, all, 1, 0));
        times.push_back(static_cast<double>(context.now() - began) / 2e3);
      } else {
        LACUNA_TRY(ranks->recv(there, all, 0, 0));
        LACUNA_TRY(ranks->send(back, all, 0, 0));
      }
    }
    return {};
  }));
  return times;
}

}  // namespace

void bind_policies(nb::module_& m) {
  m.def(
      "simulate_messages",
      [](const std::string& profile, const std::string& registering, std::int64_t part_bytes, std::int64_t bytes,
         const std::vector<std::int64_t>& buffers) {
        protocol::Options options{.part_bytes = part_bytes};
        if (buffers.empty() || *std::ranges::min_element(buffers) < 0 || bytes < 1 || part_bytes < 1)
          throw nb::value_error("buffers are numbered from 0 on, and messages and parts have a byte at least");
        options.registering = value_or_raise(protocol::registering_from_name(registering));
        options.force.method = value_or_raise(method::find("pack_write"));
        const auto times = [&] {
          const nb::gil_scoped_release unlocked;
          return messages(profile, options, bytes, buffers);
        }();
        return value_or_raise(times);
      },
      "profile"_a, "registering"_a, "part_bytes"_a, "bytes"_a, "buffers"_a,
      "What messages of `bytes` bytes take between two ranks on a simulated NIC, in microseconds one way, back and forth: one number for "
      "each of\n"
      "`buffers`, which says from and into which memory the message goes (the same number, the same memory). `profile`: a file. "
      "`registering`: copy,\n"
      "leave_pinned, pipeline, leave_pinned_pipeline or automatic (docs/guide/registration.md). One RDMA write moves each part. Errors: "
      "ValueError.");
  m.def(
      "shared_bytes",
      [](int ranks) -> std::int64_t { return value_or_raise(protocol::Options::from_environment({})).shared_bytes_of(ranks); }, "ranks"_a,
      "Bytes that a rank shares with the others of its node at most, of so many on the node; `LACUNA_SHARED_BYTES` says\n"
      "otherwise. Raises ValueError if that is no number of bytes.");
  m.def(
      "board_bytes",
      [](int ranks) -> std::int64_t {
        return guide::mpi_board_bytes(value_or_raise(protocol::Options::from_environment({})).shared_bytes_of(ranks));
      },
      "ranks"_a,
      "Bytes that a rank of a preloaded MPI program has besides, at most, for boards: memory by which collectives go.\n"
      "Raises as shared_bytes().");
  m.def(
      "freed_memory_is_told",
      [] {
        const Result<void> told = protocol::freed_memory_is_told();
        return told ? std::string() : told.error().message;
      },
      "Why this system does not tell of memory that is freed while a NIC holds it; empty if it does (docs/guide/registration.md).");
}

}  // namespace lacuna::python
