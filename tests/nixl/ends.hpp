// Agents for tests, as NIXL would make them: engines, the memory that each registered, and lists of its pieces.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/nixl/engine.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {

/// A piece of a registration.
struct Extent {
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

/// An agent with one registration.
class AgentEnd {
 public:
  /// `more`: parameters beside the NIC. Without, calls wait for peers as long as a test may take.
  AgentEnd(const std::string& name, const std::string& nic, std::size_t bytes, const nixl_b_params_t& more = {});
  ~AgentEnd();
  AgentEnd(const AgentEnd&) = delete;
  AgentEnd& operator=(const AgentEnd&) = delete;

  [[nodiscard]] nixlBackendEngine& engine() const { return *engine_; }
  [[nodiscard]] bool works() const { return engine_->works(); }
  [[nodiscard]] std::vector<std::byte>& memory() { return memory_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string token() const;

  /// What `other` tells by its metadata.
  void load(const AgentEnd& other);
  void load(const std::string& name, const std::string& address, const std::string& token, std::uint64_t base, std::uint64_t bytes);
  /// Its own memory, as the target of its own transfers.
  void load_self();
  nixl_status_t deregister();
  nixl_status_t register_again();

  [[nodiscard]] nixl_meta_dlist_t local(const std::vector<Extent>& pieces) const;
  /// Of the memory that was loaded.
  [[nodiscard]] nixl_meta_dlist_t remote(const std::vector<Extent>& pieces) const;

 private:
  const std::string name_;
  std::vector<std::byte> memory_;
  std::unique_ptr<nixl::Engine> engine_;
  nixlBackendMD* own_ = nullptr;
  nixlBackendMD* loaded_ = nullptr;
  std::uint64_t loaded_base_ = 0;
};

/// What a process tells another one through a pipe.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Pipe() {
    for (const int end : ends_) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void say(const std::string& text) const {
    const std::uint64_t length = text.size();
    EXPECT_EQ(write(ends_[1], &length, sizeof length), static_cast<ssize_t>(sizeof length));
    EXPECT_EQ(write(ends_[1], text.data(), length), static_cast<ssize_t>(length));
  }
  /// Empty: nothing came.
  [[nodiscard]] std::string hear() const {
    pollfd ready{ends_[0], POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(kPatience / 1'000'000)) != 1) return {};
    std::uint64_t length = 0;
    EXPECT_EQ(read(ends_[0], &length, sizeof length), static_cast<ssize_t>(sizeof length));
    std::string text(length, '\0');
    EXPECT_EQ(read(ends_[0], text.data(), length), static_cast<ssize_t>(length));
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Prepares, posts, waits and releases; the first status that is not as it should be, or NIXL_SUCCESS.
nixl_status_t transfer(AgentEnd& from, nixl_xfer_op_t operation, const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote,
                       const std::string& agent, const nixlBackendOptionalArgs& more = {});
/// Until a posted transfer is over.
nixl_status_t finish(const nixlBackendEngine& engine, nixlBackendReqH* handle);
/// Until `count` notifications have come; fewer if they do not come.
notif_list_t notifications(nixlBackendEngine& engine, std::size_t count);

/// So many pieces of a stretch, in an order of their own, none of which overlaps another.
std::vector<Extent> random_extents(support::Random& random, std::int64_t count, std::int64_t stretch,
                                   const std::vector<std::int64_t>& lengths);

}  // namespace lacuna::test
