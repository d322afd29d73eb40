#include "lacuna/nic/ofi/attendant.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <vector>

#include "lacuna/nic/ofi/context.hpp"

namespace lacuna::nic::ofi {
namespace {

// A program that has not polled for so long is elsewhere: ten polls of a provider in software take less.
constexpr std::int64_t kElsewhere = 50'000;       // ns
constexpr std::int64_t kMostSleep = 100'000'000;  // ns: for what raises no event, such as a provider that had no room

void sleep_until(std::span<pollfd> files, std::int64_t ns) {
  const timespec time{0, ns};
  ppoll(files.data(), files.size(), &time, nullptr);
}

}  // namespace

base::Result<std::unique_ptr<Attendant>> Attendant::create(Context& context) {
  base::Fd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return base::fail(base::Code::limit, std::string("eventfd: ") + std::strerror(errno));
  auto made = std::make_unique<Attendant>(context, std::move(bell));
  try {
    base::without_signals([&] { made->thread_ = std::jthread([own = made.get()](const std::stop_token& stop) { own->run(stop); }); });
  } catch (const std::system_error& error) {
    return base::fail(base::Code::limit, std::string("a thread that answers peers: ") + error.what());
  }
  return made;
}

Attendant::~Attendant() {
  thread_.request_stop();
  ring();
}

void Attendant::ring() const {
  const std::uint64_t one = 1;
  // A bell that rings already takes no more, and needs none.
  static_cast<void>(write(bell_.get(), &one, sizeof one));
}

// A file may be readable for as long as the program, which polls by itself, has not taken what is there. So after it
// woke for nothing the thread sleeps a while before it looks at the files again.
void Attendant::run(const std::stop_token& stop) {
  std::vector<pollfd> files;
  for (bool woken = false; !stop.stop_requested();) try {
      bool elsewhere = false, quiet = false;
      files.assign(1, {bell_.get(), POLLIN, 0});
      {
        const std::scoped_lock lock(mutex_);
        elsewhere = base::now_ns() - used_ns_ > kElsewhere;
        if (elsewhere) context_.answer();
        quiet = context_.watch(files);
      }
      const bool naps = !quiet || (woken && !elsewhere);
      sleep_until(std::span(files).first(naps ? 1 : files.size()), naps ? kElsewhere : kMostSleep);
      woken = !naps;
      std::uint64_t rung = 0;
      if ((files.front().revents & POLLIN) != 0) static_cast<void>(read(bell_.get(), &rung, sizeof rung));
    } catch (const std::bad_alloc&) {
      base::log(base::Level::error, "a thread that answers peers has no memory, and tries again");
      sleep_until({}, kMostSleep);
    }
}

}  // namespace lacuna::nic::ofi
