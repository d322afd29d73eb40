#include "tests/support/mlx5/pins.hpp"

#include <fmt/format.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace lacuna::test::mlx5 {
namespace {

constexpr unsigned kMost = 4096;
constexpr std::size_t kAtOnce = 1 << 20;

[[noreturn]] void give_up(const char* what, int error) {
  base::log(base::Level::error, fmt::format("{}: {}", what, base::system_error("io_uring", error).text()));
  std::abort();
}

}  // namespace

struct Pins::Ring {
  io_uring uring{};
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (uring.ring_fd > 0) io_uring_queue_exit(&uring);
  }
  void run(const auto& prepare, std::size_t bytes) {
    io_uring_sqe* request = io_uring_get_sqe(&uring);
    prepare(request);
    io_uring_submit_and_wait(&uring, 1);
    io_uring_cqe* done = nullptr;
    if (const int error = io_uring_wait_cqe(&uring, &done); error < 0) give_up("waiting", -error);
    const int moved = done->res;
    io_uring_cqe_seen(&uring, done);
    if (std::cmp_not_equal(moved, bytes)) give_up("a pinned buffer is not there", moved < 0 ? -moved : EIO);
  }
};

base::Result<std::unique_ptr<Pins>> Pins::open() {
  auto ring = std::make_unique<Ring>();
  const auto refuse = [](int error) {
    return base::fail(base::Code::unsupported, base::system_error("io_uring, for pages that are really pinned", error).message);
  };
  if (const int error = io_uring_queue_init(4, &ring->uring, 0); error < 0) return refuse(-error);
  if (const int error = io_uring_register_buffers_sparse(&ring->uring, kMost); error < 0) return refuse(-error);
  base::Fd bounce(memfd_create("lacuna test pins", MFD_CLOEXEC));
  if (!bounce || ftruncate(bounce.get(), kAtOnce) != 0) return std::unexpected(base::system_error("memfd_create", errno));
  return std::unique_ptr<Pins>(new Pins(std::move(ring), std::move(bounce)));
}

Pins::Pins(std::unique_ptr<Ring> ring, base::Fd bounce) : ring_(std::move(ring)), bounce_(std::move(bounce)), free_(kMost) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

Pins::~Pins() = default;

base::Result<int> Pins::pin(std::span<std::byte> bytes) {
  if (free_.empty()) return base::fail(base::Code::limit, fmt::format("{} pinned buffers", kMost));
  const iovec memory{bytes.data(), bytes.size()};
  const int done = io_uring_register_buffers_update_tag(&ring_->uring, static_cast<unsigned>(free_.back()), &memory, nullptr, 1);
  if (done != 1)
    return base::fail(done == -EFAULT ? base::Code::invalid_argument : base::Code::limit, base::system_error("pinning", -done).message);
  const int pinned = free_.back();
  free_.pop_back();
  return pinned;
}

void Pins::unpin(int pinned) {
  const iovec nothing{};
  const int done = io_uring_register_buffers_update_tag(&ring_->uring, static_cast<unsigned>(pinned), &nothing, nullptr, 1);
  if (done != 1) give_up("unpinning", -done);
  free_.push_back(pinned);
}

void Pins::fetch(int pinned, const std::byte* at, std::span<std::byte> into) {
  for (; !into.empty(); at += std::min(kAtOnce, into.size()), into = into.subspan(std::min(kAtOnce, into.size()))) {
    const std::size_t bytes = std::min(kAtOnce, into.size());
    ring_->run([&](io_uring_sqe* sqe) { io_uring_prep_write_fixed(sqe, bounce_.get(), at, static_cast<unsigned>(bytes), 0, pinned); },
               bytes);
    if (pread(bounce_.get(), into.data(), bytes, 0) != static_cast<ssize_t>(bytes)) give_up("pread", errno);
  }
}

void Pins::put(int pinned, std::byte* at, std::span<const std::byte> from) {
  for (; !from.empty(); at += std::min(kAtOnce, from.size()), from = from.subspan(std::min(kAtOnce, from.size()))) {
    const std::size_t bytes = std::min(kAtOnce, from.size());
    if (pwrite(bounce_.get(), from.data(), bytes, 0) != static_cast<ssize_t>(bytes)) give_up("pwrite", errno);
    ring_->run([&](io_uring_sqe* sqe) { io_uring_prep_read_fixed(sqe, bounce_.get(), at, static_cast<unsigned>(bytes), 0, pinned); },
               bytes);
  }
}

}  // namespace lacuna::test::mlx5
