#include "tests/simulate/piece.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::simulate {
namespace {

constexpr std::int64_t kGuard = 64;  // bytes on either side that nothing may touch
std::byte noise(std::size_t at) { return static_cast<std::byte>(at * 131 + 7); }

support::Sample sample(std::uint64_t seed, std::int64_t bytes, bool receives) {
  support::Random random(seed);
  const support::Limits limits{.runs = 3000, .bytes = std::max<std::int64_t>(bytes, 1), .span = 4 << 20};
  return receives ? support::random_receive_layout(random, bytes, limits) : support::random_layout_of_size(random, bytes, limits);
}

}  // namespace

std::byte content(std::uint64_t seed, std::int64_t at) {
  std::uint64_t z = seed + static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::byte>(z >> 40);
}

Piece::Piece(std::uint64_t seed, std::int64_t bytes, bool receives, Ground* ground)
    : sample_(sample(seed, bytes, receives)), places_(sample_.typemap.addresses()), ground_(ground) {
  std::int64_t high = 0;
  for (const std::int64_t place : places_) {
    low_ = std::min(low_, place);
    high = std::max(high, place + 1);
  }
  low_ -= kGuard;
  const auto size = static_cast<std::size_t>(high + kGuard - low_);
  if (ground_ != nullptr) memory_ = ground_->take(size);
  if (!memory_.empty()) return;
  ground_ = nullptr;
  own_.resize(size);
  memory_ = own_;
}

Piece::~Piece() {
  if (ground_ != nullptr) ground_->give_back(memory_);
}

void Piece::spoil() {
  for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = noise(i);
}

void Piece::spoil_first() {
  if (!places_.empty()) memory_[static_cast<std::size_t>(places_.front() - low_)] ^= std::byte{1};
}

void Piece::fill(std::uint64_t of) {
  spoil();
  for (std::size_t i = 0; i < places_.size(); ++i)
    memory_[static_cast<std::size_t>(places_[i] - low_)] = content(of, static_cast<std::int64_t>(i));
}

std::vector<std::byte> contents(std::uint64_t seed, std::int64_t bytes) {
  std::vector<std::byte> all;
  for (std::int64_t i = 0; i < bytes; ++i) all.push_back(content(seed, i));
  return all;
}

std::vector<std::byte> sent(std::uint64_t seed, std::int64_t bytes) {
  Piece piece(seed + 1, bytes, false);
  piece.fill(seed);
  return piece.stream();
}

std::vector<std::byte> Piece::stream() const {
  std::vector<std::byte> all;
  for (const std::int64_t place : places_) all.push_back(memory_[static_cast<std::size_t>(place - low_)]);
  return all;
}

std::string Piece::check(const std::vector<std::byte>& came) const {
  std::vector<bool> written(memory_.size());
  for (std::size_t i = 0; i < std::min(came.size(), places_.size()); ++i) {
    const auto at = static_cast<std::size_t>(places_[i] - low_);
    written[at] = true;
    if (memory_[at] != came[i]) return fmt::format("byte {} of {} is wrong", i, came.size());
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (!written[i] && memory_[i] != noise(i))
      return fmt::format("memory beside its {} bytes was written, at {}", came.size(), static_cast<std::int64_t>(i) + low_);
  }
  return {};
}

}  // namespace lacuna::simulate
