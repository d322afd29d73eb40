#include "lacuna/base/base.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

namespace lacuna::base {

std::string_view version() { return LACUNA_VERSION; }

std::string_view code_name(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid argument";
    case Code::overflow: return "overflow";
    case Code::limit: return "limit";
    case Code::malformed: return "malformed";
    case Code::unsupported: return "unsupported";
    case Code::permission: return "permission";
    case Code::out_of_memory: return "out of memory";
    case Code::peer_lost: return "peer lost";
    case Code::timeout: return "timeout";
    case Code::io: return "io";
    case Code::transfer: return "transfer";
    case Code::truncated: return "truncated";
  }
  return "unknown";
}

std::string Error::text() const { return fmt::format("{}: {}", code_name(code), message); }

Error system_error(std::string_view call, int error_number) {
  Code code = Code::io;
  if (error_number == EPERM || error_number == EACCES) code = Code::permission;
  if (error_number == ENOMEM || error_number == ENOSPC) code = Code::out_of_memory;
  if (error_number == EPIPE || error_number == ECONNRESET) code = Code::peer_lost;
  return {code, fmt::format("{}: {}", call, std::strerror(error_number))};
}

std::int64_t now_ns() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

int usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool populate(const void* memory, std::size_t bytes, bool write) {
#if defined(MADV_POPULATE_WRITE)
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(memory) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(memory) + bytes;
  return madvise(reinterpret_cast<void*>(first), end - first, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
#else
  (void)memory, (void)bytes, (void)write;
  return false;
#endif
}

bool discard(void* memory, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  return end <= first || madvise(reinterpret_cast<void*>(first), end - first, MADV_REMOVE) == 0;
}

namespace {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int of_a_fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, of_a_fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void without_signals(const std::function<void()>& start) {
  const SignalsBlocked blocked;
  start();
}

Result<void> pin_to_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::unexpected(system_error("sched_getaffinity", errno));
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != index) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return std::unexpected(system_error("sched_setaffinity", errno));
    return {};
  }
  return fail(Code::limit, fmt::format("CPU number {} of this process was asked for; it may use {}", index, seen));
}

Result<int> current_cpu() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::unexpected(system_error("sched_getaffinity", errno));
  const int cpu = sched_getcpu();
  if (cpu < 0) return std::unexpected(system_error("sched_getcpu", errno));
  int before = 0;
  for (int other = 0; other < cpu; ++other) before += CPU_ISSET(other, &allowed) ? 1 : 0;
  return before;
}

namespace {
// The data or unified cache of a level as Linux describes CPU 0's. In a virtual machine it is right more often than
// sysconf, which multiplies what CPUID says of the host.
std::optional<std::int64_t> cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int its_level = 0;
    std::string type;
    std::int64_t kilobytes = 0;
    if (!(std::ifstream(folder + "level") >> its_level)) return std::nullopt;
    std::ifstream(folder + "type") >> type;
    // "1024K"
    if (its_level == level && type != "Instruction" && std::ifstream(folder + "size") >> kilobytes) return kilobytes << 10;
  }
  return std::nullopt;
}
}  // namespace

// The parts that CPUID's leaf 1 has beside the first ones are for families and models which those have no room for.
CpuKind cpu_kind() {
  CpuKind kind;
#if defined(__x86_64__)
  unsigned highest = 0, first = 0, second = 0, third = 0, unused = 0;
  if (__get_cpuid(0, &highest, &first, &third, &second) == 0) return kind;
  kind.amd = first == signature_AMD_ebx && second == signature_AMD_edx && third == signature_AMD_ecx;
  unsigned bits = 0;
  if (__get_cpuid(1, &bits, &unused, &unused, &unused) == 0) return kind;
  kind.family = bits >> 8 & 0xf;
  kind.model = bits >> 4 & 0xf;
  if (kind.family == 6 || kind.family == 0xf) kind.model |= bits >> 12 & 0xf0;
  if (kind.family == 0xf) kind.family += bits >> 20 & 0xff;
#endif
  return kind;
}

Machine machine() {
  Machine m{};
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      m.cpu = line.substr(line.find(": ") + 2);
      break;
    }
  }
  if (const CpuKind kind = cpu_kind(); kind.family != 0) m.cpu += fmt::format(" (family {}, model {})", kind.family, kind.model);
  utsname name{};
  if (uname(&name) == 0) m.kernel = name.release;
  m.cpus = usable_cpus();
  const auto known = [](int key) { return std::max<std::int64_t>(0, sysconf(key)); };
  m.l1d_bytes = cache_bytes(1).value_or(known(_SC_LEVEL1_DCACHE_SIZE));
  m.l2_bytes = cache_bytes(2).value_or(known(_SC_LEVEL2_CACHE_SIZE));
  m.llc_bytes = cache_bytes(3).value_or(known(_SC_LEVEL3_CACHE_SIZE));
  if (m.llc_bytes == 0) m.llc_bytes = m.l2_bytes;
  m.page_bytes = known(_SC_PAGESIZE);
  m.memory_bytes = known(_SC_PHYS_PAGES) * m.page_bytes;
  return m;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

namespace {
Level wanted_level() {
  const char* value = std::getenv("LACUNA_LOG");
  const std::string_view name = value != nullptr ? value : "warn";
  if (name == "error") return Level::error;
  if (name == "info") return Level::info;
  if (name == "debug") return Level::debug;
  return Level::warn;
}
}  // namespace

void log(Level level, std::string_view message) {
  static constexpr const char* names[] = {"error", "warning", "info", "debug"};
  if (level > wanted_level()) return;
  // Without memory of its own: it may tell that there is none.
  std::fprintf(stderr, "lacuna: %s: %.*s\n", names[static_cast<int>(level)], static_cast<int>(message.size()), message.data());
}

}  // namespace lacuna::base
