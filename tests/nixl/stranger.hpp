// A peer of an agent that is no agent.
#pragma once

#include <list>
#include <thread>

#include "lacuna/nixl/connection.hpp"
#include "tests/nixl/ends.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"

namespace lacuna::test {

/// A connection to a peer that is no agent, but a communicator that says what the test likes.
class Stranger {
 public:
  explicit Stranger(nixl::Connection::Role role) : rank_(role == nixl::Connection::Role::first ? 0 : 1) {
    EXPECT_TRUE(nic::tcp::Secret::create(""));
    owned_.reset(registrations_.add(reinterpret_cast<std::uint64_t>(memory_.data()), memory_.size()).value());
    auto both = groups(2).value();
    const auto make = [&](int rank) {
      nixl::Connection::Ends ends{.context = nic::open("local").value(), .bootstrap = nullptr, .ranks = nullptr, .direct = nullptr};
      ends.ranks = protocol::Communicator::create(*ends.context, "local", std::move(both[static_cast<std::size_t>(rank)])).value();
      return ends;
    };
    std::thread other([&] { hostile_ = make(1 - rank_); });
    nixl::Connection::Ends ends = make(rank_);
    other.join();
    connection_ = std::make_unique<nixl::Connection>("stranger\x1b[31m\n", role, std::move(ends),
                                                     nixl::Connection::Around{registrations_, inbox_, helpers_, kPatience});
  }
  ~Stranger() {
    std::thread end([&] { connection_.reset(); });
    for (protocol::Request* request : sent_) hostile_.ranks->give_up(request);  // a lost connection takes no more
    hostile_.ranks.reset();
    end.join();
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  /// False: the connection has ended.
  bool say(int kind, std::vector<std::byte> bytes) {
    said_.push_back(std::move(bytes));
    const auto layout = support::value(layout::Layout::bytes(static_cast<std::int64_t>(said_.back().size())));
    const auto sent = hostile_.ranks->isend(said_.back().data(), layout, rank_, kind);
    if (sent) sent_.push_back(*sent);
    return sent.has_value();
  }
  void step() {
    connection_->step();
    hostile_.ranks->progress();
  }
  [[nodiscard]] nixl::Connection& connection() { return *connection_; }
  [[nodiscard]] const std::vector<std::byte>& memory() const { return memory_; }

 private:
  const int rank_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4096, std::byte{7});
  nixl::Registrations registrations_;
  nixl::Inbox inbox_;
  nixl::Helpers helpers_;
  std::unique_ptr<nixl::LocalMemory> owned_;
  std::list<std::vector<std::byte>> said_;
  std::vector<protocol::Request*> sent_;
  nixl::Connection::Ends hostile_;
  std::unique_ptr<nixl::Connection> connection_;
};

}  // namespace lacuna::test
