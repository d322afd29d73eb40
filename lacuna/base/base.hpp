// base: the platform. Errors, clocks, CPU placement, checked arithmetic and the log; it hides the operating system.
//
// Everything that can fail because of its input, its peer or the machine returns Result<T>. Nothing in Lacuna throws on
// purpose and nothing is process-global: what a caller must keep hangs off the objects that it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lacuna::base {

/// "0.2.0"
[[nodiscard]] std::string_view version();

/// What kind of failure an Error is; the message says what, where and the limit.
enum class Code {
  invalid_argument,  ///< the caller's input breaks a rule that the message names
  overflow,          ///< a size, count or address does not fit 64 bits
  limit,             ///< a device or library limit; the message holds its value
  malformed,         ///< bytes from a peer are not what they claim to be
  unsupported,       ///< the mechanism cannot do this, here or at all
  permission,        ///< the operating system refused
  out_of_memory,     ///< no memory, or none of the kind asked for
  peer_lost,         ///< the peer died or closed the connection
  timeout,           ///< a deadline passed
  io,                ///< a system call failed
  transfer,          ///< a work request completed with an error
  truncated,         ///< a message is longer than its receive
};

/// The name of a code, as printed in front of a message.
[[nodiscard]] std::string_view code_name(Code code);

struct Error {
  Code code;
  std::string message;

  /// "limit: sg_list of 40 entries; this queue pair takes 32".
  [[nodiscard]] std::string text() const;
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

/// An Error for a failed system call, with errno's text.
[[nodiscard]] Error system_error(std::string_view call, int error_number);

// Evaluates to the value of a Result, or returns its error from the enclosing function. A statement expression (GCC and
// Clang both have it) because GCC 12's std::expected has no monadic operations and a chain of `if`s hides the argument.
#define LACUNA_TRY(expression)                                   \
  __extension__({                                                \
    auto lacuna_result_ = (expression);                          \
    if (!lacuna_result_) [[unlikely]]                            \
      return std::unexpected(std::move(lacuna_result_).error()); \
    ::lacuna::base::detail::take(std::move(lacuna_result_));     \
  })

namespace detail {
template <class T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}
}  // namespace detail

// --- checked arithmetic: every quantity that a user or a peer can choose goes through these -------------------------

[[nodiscard]] inline bool add(std::int64_t a, std::int64_t b, std::int64_t& sum) { return !__builtin_add_overflow(a, b, &sum); }
[[nodiscard]] inline bool sub(std::int64_t a, std::int64_t b, std::int64_t& difference) {
  return !__builtin_sub_overflow(a, b, &difference);
}
[[nodiscard]] inline bool mul(std::int64_t a, std::int64_t b, std::int64_t& product) { return !__builtin_mul_overflow(a, b, &product); }

// --- memory that a peer may write ---------------------------------------------------------------------------------

/// A copy of what a peer may write at any time. What is checked, and then used, is this copy: the compiler cannot read
/// the shared memory again in its place. Every value that lies in memory which a peer can write is read by this, and
/// once.
template <class T>
[[nodiscard]] T read_once(const T& shared) {
  static_assert(std::is_trivially_copyable_v<T>);
  if constexpr (std::is_integral_v<T>) {
    return __atomic_load_n(&shared, __ATOMIC_RELAXED);
  } else {
    T copy;
    std::memcpy(&copy, &shared, sizeof copy);
    asm volatile("" : "+m"(copy));  // for all that the compiler knows this changes the copy
    return copy;
  }
}

// --- secrets --------------------------------------------------------------------------------------------------------

/// Overwrites a text with zeros when a scope ends, however it ends.
class Wipe {
 public:
  explicit Wipe(std::string& text) : text_(text) {}
  ~Wipe() { explicit_bzero(text_.data(), text_.size()); }
  Wipe(const Wipe&) = delete;
  Wipe& operator=(const Wipe&) = delete;

 private:
  std::string& text_;
};

// --- time -----------------------------------------------------------------------------------------------------------

/// CLOCK_MONOTONIC in nanoseconds; the same clock in every process of one machine.
[[nodiscard]] std::int64_t now_ns();

// --- the CPU --------------------------------------------------------------------------------------------------------

/// A hint that this thread is spinning.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A hint that this thread will write the cache line of `address`, which other CPUs may have.
inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

/// Has the system give pages to this memory now, for writing or for reading, instead of one by one when they are
/// touched first. False: some of it may not be touched so; or the system cannot (madvise(2), MADV_POPULATE_WRITE: Linux
/// 5.14), which says so of 0 bytes too.
bool populate(const void* memory, std::size_t bytes, bool write);

/// Gives back the whole pages of memory that processes share, for all of them: it reads as zeros. False: the system
/// cannot, as of other memory.
bool discard(void* memory, std::size_t bytes);

/// Number of CPUs that this process may run on.
[[nodiscard]] int usable_cpus();

/// Pins the calling thread to the index-th CPU that the process may use; an error where the system refuses.
[[nodiscard]] Result<void> pin_to_cpu(int index);

/// The index, as pin_to_cpu() takes it, of the CPU that the calling thread is on.
[[nodiscard]] Result<int> current_cpu();

/// Does it while no signal comes to this thread; nor, for good, to the threads that it starts: a program's signals are
/// for threads that the program knows. But for those of a thread's own faults, which the program may handle.
void without_signals(const std::function<void()>& start);

/// What a reader of a measurement wants to know about the machine.
struct Machine {
  std::string cpu;         ///< model name, as the kernel gives it; x86: "(family F, model M)", of which there are many
  std::string kernel;      ///< release of the running kernel
  int cpus;                ///< usable CPUs
  std::int64_t l1d_bytes;  ///< 0 where unknown
  std::int64_t l2_bytes;   ///< 0 where unknown
  std::int64_t llc_bytes;  ///< last-level cache; 0 where unknown
  std::int64_t page_bytes;
  std::int64_t memory_bytes;
};
[[nodiscard]] Machine machine();

/// What tells x86 CPUs of one name apart; zeros elsewhere.
struct CpuKind {
  bool amd = false;
  unsigned family = 0, model = 0;
};
[[nodiscard]] CpuKind cpu_kind();

// --- files ----------------------------------------------------------------------------------------------------------

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// --- the log --------------------------------------------------------------------------------------------------------

enum class Level { error, warn, info, debug };

/// Writes one line to standard error if LACUNA_LOG (error, warn, info, debug; default warn) asks for the level.
void log(Level level, std::string_view message);

}  // namespace lacuna::base
