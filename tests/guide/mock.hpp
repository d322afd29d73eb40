// NICs and profiles made by hand, for tests of the guide: what it answers follows by arithmetic.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "lacuna/guide/guide.hpp"

namespace lacuna::test {

using layout::Layout;
using method::Price;
using method::Prices;

inline Layout bytes(std::int64_t n) { return Layout::bytes(n).value(); }
inline Layout vector(std::int64_t count, std::int64_t block, std::int64_t stride) {
  return Layout::hvector(count, 1, stride, bytes(block)).value();
}

using PriceList = std::initializer_list<std::pair<Price, double>>;
/// All others are 0.
inline Prices prices(PriceList list) {
  Prices all{};
  for (const auto& [price, value] : list) all[static_cast<std::size_t>(price)] = value;
  return all;
}

inline const nic::PathInfo kWire{nic::Path::wire, true, true, false, nic::Mover::device, 1024, "a wire"};
inline const nic::PathInfo kMapped{nic::Path::mapped, true, true, true, nic::Mover::initiator, 0, "reaches shared memory"};
inline const nic::PathInfo kKernel{nic::Path::kernel, true, true, false, nic::Mover::initiator, 0, "a call"};

inline nic::Limits mock_nic(std::vector<nic::PathInfo> paths, int keys = 0) {
  nic::Limits limits{.max_sge = 30, .max_sge_rd = 30, .max_inline = 64, .max_send_wr = 128, .max_recv_wr = 128};
  limits.max_cqe = 1000;
  limits.max_message_bytes = 1 << 30;
  if (keys > 0) limits.indirect = {.keys = keys, .entries = 1000, .inline_entries = 10, .strided_entries = 0, .stride = 65535};
  limits.paths = std::move(paths);
  return limits;
}

inline guide::Profile mock_profile(std::initializer_list<std::pair<nic::Path, Prices>> paths) {
  guide::Profile profile;
  profile.nic = "mock";
  profile.file = "mock.json";
  profile.classes.resize(1);
  for (const auto& [path, prices] : paths) profile.classes[0].paths.push_back({.path = path, .prices = prices, .biases = {}});
  return profile;
}

/// A variable of the environment, until the end of a test.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : Variable(std::move(name)) { setenv(name_.c_str(), value.c_str(), 1); }
  /// Not set at all.
  explicit Variable(std::string name) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) old_ = old;
    unsetenv(name_.c_str());
  }
  ~Variable() {
    if (old_) setenv(name_.c_str(), old_->c_str(), 1);
    if (!old_) unsetenv(name_.c_str());
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> old_;
};

}  // namespace lacuna::test
