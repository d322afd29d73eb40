#include "lacuna/nic/local/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

namespace lacuna::nic::local {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

#ifdef __SANITIZE_THREAD__
// ThreadSanitizer knows memory by its address. Where both ends are threads of one process, they have to see a file at
// one address, or it sees no access of one end meet one of the other's. So in its builds, and in no other, a process
// maps each file once.
struct Mappings {
  struct Mapping {
    std::byte* data;
    int users;
  };
  std::mutex mutex;
  std::map<ino_t, Mapping> by_inode;
};
Mappings& mappings() {
  static Mappings all;
  return all;
}

Result<std::byte*> map_file(int file, std::size_t bytes, SharedMemory::Access /*access*/) {
  struct stat info{};
  if (fstat(file, &info) != 0) return std::unexpected(base::system_error("fstat", errno));
  const std::lock_guard lock(mappings().mutex);
  Mappings::Mapping& mapping = mappings().by_inode[info.st_ino];
  if (mapping.users++ > 0) return mapping.data;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) {
    mappings().by_inode.erase(info.st_ino);
    return std::unexpected(base::system_error("mmap", errno));
  }
  return mapping.data = static_cast<std::byte*>(data);
}

void unmap(std::byte* data, std::size_t bytes) {
  const std::lock_guard lock(mappings().mutex);
  const auto found = std::ranges::find_if(mappings().by_inode, [data](const auto& entry) { return entry.second.data == data; });
  if (--found->second.users > 0) return;
  munmap(data, bytes);
  mappings().by_inode.erase(found);
}
#else
Result<std::byte*> map_file(int file, std::size_t bytes, SharedMemory::Access access) {
  const int protection = access == SharedMemory::Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (data == MAP_FAILED) return std::unexpected(base::system_error(fmt::format("mmap of {} bytes of shared memory", bytes), errno));
  madvise(data, bytes, MADV_DONTDUMP);  // a core file would otherwise hold both processes' data
  return static_cast<std::byte*>(data);
}

void unmap(std::byte* data, std::size_t bytes) { munmap(data, bytes); }
#endif

}  // namespace

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) unmap(data_, size_);
}

Result<SharedMemory> SharedMemory::create(const char* name, std::size_t bytes) {
  SharedMemory memory;
  memory.file_ = base::Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.file_) return std::unexpected(base::system_error("memfd_create", errno));
  if (ftruncate(memory.file_.get(), static_cast<off_t>(bytes)) != 0) return std::unexpected(base::system_error("ftruncate", errno));
  if (fcntl(memory.file_.get(), F_ADD_SEALS, kSeals) != 0) return std::unexpected(base::system_error("F_ADD_SEALS", errno));
  memory.data_ = LACUNA_TRY(map_file(memory.file_.get(), bytes, Access::write));
  memory.size_ = bytes;
  return memory;
}

Result<SharedMemory> SharedMemory::map(base::Fd file, std::size_t bytes, Access access) {
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return std::unexpected(base::system_error("fstat", errno));
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || std::cmp_not_equal(info.st_size, bytes)) {
    return base::fail(base::Code::malformed, fmt::format("the peer's shared memory is not a sealed file of {} bytes", bytes));
  }
  SharedMemory memory;
  memory.data_ = LACUNA_TRY(map_file(file.get(), bytes, access));
  memory.size_ = bytes;
  memory.file_ = std::move(file);
  return memory;
}

Result<base::Fd> SharedMemory::share() const {
  base::Fd copy(fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return std::unexpected(base::system_error("F_DUPFD_CLOEXEC", errno));
  return copy;
}

Result<std::uint64_t> SharedMemory::identity() const {
  struct stat info{};
  if (fstat(file_.get(), &info) != 0) return std::unexpected(base::system_error("fstat", errno));
  return info.st_ino;
}

void SharedMemory::discard(std::byte* from, std::size_t bytes) {
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from - data_, static_cast<off_t>(bytes));
}

}  // namespace lacuna::nic::local
