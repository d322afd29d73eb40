// A channel through shared memory, both of whose ends are in one process.
#pragma once

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "lacuna/protocol/channel/channel.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {

/// Remembers what was said last: where the inbox is.
class Listening final : public nic::Bootstrap {
 public:
  explicit Listening(base::Fd socket) : socket_(std::move(socket)) {}
  base::Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    said_ = mine.bytes;
    return socket_.exchange(mine, timeout_ns);
  }
  [[nodiscard]] std::byte* inbox() const {
    std::uint64_t address = 0;
    std::memcpy(&address, said_.data(), sizeof address);
    return reinterpret_cast<std::byte*>(address);
  }

 private:
  nic::UnixBootstrap socket_;
  std::vector<std::byte> said_;
};

/// Both ends in one process.
struct Rings {
  std::unique_ptr<nic::Context> context[2];
  std::unique_ptr<Listening> bootstrap[2];
  std::unique_ptr<protocol::Channel> end[2];

  Rings() {
    auto sockets = support::value(nic::UnixBootstrap::socket_pair());
    bootstrap[0] = std::make_unique<Listening>(std::move(sockets.first));
    bootstrap[1] = std::make_unique<Listening>(std::move(sockets.second));
    for (auto& one : context) one = support::value(nic::open("local"));
    std::thread other([&] { end[1] = support::value(protocol::make_ring_channel(*context[1], *bootstrap[1])); });
    end[0] = support::value(protocol::make_ring_channel(*context[0], *bootstrap[0]));
    other.join();
  }
  bool send(int from, std::uint64_t number, std::size_t bytes) {
    std::byte* to = end[from]->claim(bytes);
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(number * 31 + i);
    protocol::Head head;
    head.kind = protocol::HeadKind::eager;
    head.bytes = number;
    head.payload = static_cast<std::uint32_t>(bytes);
    end[from]->commit(head);
    return true;
  }
};

}  // namespace lacuna::test
