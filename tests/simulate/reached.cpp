#include "tests/simulate/reached.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "lacuna/base/rarely.hpp"

namespace lacuna::simulate {

Reached::Reached() {
  const std::span<base::RareBranch> marks = base::rare_branches();
  for (const base::RareBranch& mark : marks) names_.emplace_back(mark.name);
  std::ranges::sort(names_);
  const auto rest = std::ranges::unique(names_);
  names_.erase(rest.begin(), rest.end());
  void* const memory = mmap(nullptr, std::max<std::size_t>(names_.size(), 1) * sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    names_.clear();
    return;
  }
  all_ = {static_cast<std::atomic<std::uint64_t>*>(memory), names_.size()};
  for (const base::RareBranch& mark : marks) {
    places_.push_back(static_cast<std::size_t>(std::ranges::lower_bound(names_, mark.name) - names_.begin()));
    seen_.push_back(mark.times);
  }
}

Reached::~Reached() {
  if (!all_.empty()) munmap(all_.data(), all_.size_bytes());
}

void Reached::take() {
  const std::span<base::RareBranch> marks = base::rare_branches();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    all_[places_[i]] += marks[i].times - seen_[i];
    seen_[i] = marks[i].times;
  }
}

std::vector<std::uint64_t> Reached::times() const { return {all_.begin(), all_.end()}; }

}  // namespace lacuna::simulate
