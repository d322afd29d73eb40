// Calls that were handed to the host as they are, by function and reason: what LACUNA_MPI_REPORT=1 prints of them. A
// new reason is one line of LACUNA_MPI_REASONS; where the decision is made, it is returned or left in what the decision
// fills in (Source, Target, Origin).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lacuna/mpi/host/host.hpp"

namespace lacuna::mpi {

#define LACUNA_MPI_REASONS(X)                                          \
  X(not_full, "LACUNA_MPI is not full on all ranks")                   \
  X(no_data, "nothing to move")                                        \
  X(in_error, "arguments that the MPI has to judge")                   \
  X(contiguous, "no gaps")                                             \
  X(long_runs, "no gaps, or few")                                      \
  X(too_short, "too short")                                            \
  X(too_long, "more than 2 GiB")                                       \
  X(first_use, "a datatype that does not pay to decode yet")           \
  X(undecodable, "a datatype that cannot be decoded")                  \
  X(not_reached, "with this rank itself, or a process of another job") \
  X(alone, "no other rank")                                            \
  X(intercommunicator, "a collective between two groups")              \
  X(of_host, "a request, message or communicator of the MPI's alone")  \
  X(host_is_fast, "this MPI is fast with such an operation")           \
  X(device_memory, "memory of a GPU")                                  \
  X(no_room, "no room to offer it")                                    \
  X(on_the_way, "too much is on the way to other nodes")               \
  X(no_memory, "no memory")

/// Why the host got a call as it is.
enum class Why : std::uint8_t {
#define X(name, text) name,
  LACUNA_MPI_REASONS(X)
#undef X
      count_
};

// Those with a form for large counts, and those without. Collectives are in LACUNA_MPI_COLLECTIVES.
#define LACUNA_MPI_PASSING(X) \
  X(Send)                     \
  X(Ssend)                    \
  X(Rsend)                    \
  X(Bsend)                    \
  X(Isend)                    \
  X(Issend)                   \
  X(Irsend)                   \
  X(Ibsend)                   \
  X(Send_init)                \
  X(Ssend_init)               \
  X(Rsend_init)               \
  X(Bsend_init)               \
  X(Recv)                     \
  X(Irecv)                    \
  X(Recv_init)                \
  X(Mrecv)                    \
  X(Imrecv)                   \
  X(Sendrecv)                 \
  X(Sendrecv_replace)         \
  X(Isendrecv)                \
  X(Isendrecv_replace)        \
  X(Pack)                     \
  X(Unpack)
#define LACUNA_MPI_PASSING_SMALL(X) \
  X(Probe)                          \
  X(Iprobe)                         \
  X(Mprobe)                         \
  X(Improbe)                        \
  X(Wait)                           \
  X(Test)                           \
  X(Waitall)                        \
  X(Testall)                        \
  X(Waitany)                        \
  X(Testany)                        \
  X(Waitsome)                       \
  X(Testsome)                       \
  X(Request_get_status)             \
  X(Request_get_status_all)         \
  X(Request_get_status_any)         \
  X(Request_get_status_some)        \
  X(Start)                          \
  X(Startall)                       \
  X(Request_free)                   \
  X(Cancel)                         \
  X(Put)                            \
  X(Get)

/// A function that may pass through: MPI's name without MPI_.
enum class Function : std::uint16_t {
#define X(name) name, name##_c,
  LACUNA_MPI_PASSING(X)
#undef X
#define X(name) name,
      LACUNA_MPI_PASSING_SMALL(X)
#undef X
#define X(name, later, arguments) name, later, name##_init, name##_c, later##_c, name##_init_c,
          LACUNA_MPI_COLLECTIVES(X)
#undef X
              count_
};

class Passed {
 public:
  void add(Function function, Why why) { at(function, why).fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t times(Function function, Why why) const {
    return times_[place(function, why)].load(std::memory_order_relaxed);
  }
  /// The names of the functions.
  static std::span<const char* const> functions();
  /// A line for each function and reason that there was.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t kWhys = static_cast<std::size_t>(Why::count_);
  static std::size_t place(Function function, Why why) {
    return static_cast<std::size_t>(function) * kWhys + static_cast<std::size_t>(why);
  }
  std::atomic<std::int64_t>& at(Function function, Why why) { return times_[place(function, why)]; }
  std::array<std::atomic<std::int64_t>, static_cast<std::size_t>(Function::count_) * kWhys> times_{};
};

}  // namespace lacuna::mpi
