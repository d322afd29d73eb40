// lacuna::Exchange: what all ranks do together. Communicator makes it. Include lacuna.hpp.
#ifndef LACUNA_EXCHANGE_HPP
#define LACUNA_EXCHANGE_HPP

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "error.hpp"
#include "layout.hpp"

namespace lacuna {

/// What all ranks do together, to be started again and again (lacuna_exchange). Errors of arguments come out of the
/// calls that wait or test. One that is under way is given up when it is destroyed. Must not outlive its
/// communicator, nor the memory.
class Exchange {
 public:
  struct Options {
    std::string schedule = "automatic";  ///< "at_once", "pairwise", "forward"; all ranks the same
    int window = 8;                      ///< of pairwise: sends, and receives, under way at once
    double timeout_s = 0;                ///< of wait(), for the other ranks; 0: for ever
  };
  explicit Exchange(lacuna_exchange* handle) : handle_(handle) {}
  /// Begins, without waiting: the memory belongs to the exchange until it is done.
  void start() { detail::check(lacuna_exchange_start(handle_.get())); }
  /// Moves on; whether it is done.
  bool test() {
    int done = 0;
    detail::check(lacuna_exchange_test(handle_.get(), &done));
    return done == 1;
  }
  void wait() { detail::check(lacuna_exchange_wait(handle_.get())); }
  [[nodiscard]] std::string explain() const {
    return detail::text_of([this](char* text, std::size_t size) { return lacuna_exchange_explain(handle_.get(), text, size); });
  }

 private:
  std::unique_ptr<lacuna_exchange, detail::Free> handle_;
};

/// Memory of an exchange, with the rank where it goes, or comes from: `layout` at `base`.
struct Outgoing {
  int rank;
  const void* base;
  const Layout* layout;
};
struct Incoming {
  int rank;
  void* base;
  const Layout* layout;
};
using Matrix = lacuna_matrix;

namespace detail {

// Lists as C takes them.
template <class Base>
struct Blocks {
  explicit Blocks(const auto& blocks) {
    for (const auto& block : blocks) {
      ranks.push_back(block.rank);
      bases.push_back(block.base);
      layouts.push_back(block.layout != nullptr ? block.layout->get() : nullptr);
    }
  }
  std::vector<int> ranks;
  std::vector<Base> bases;
  std::vector<const lacuna_layout*> layouts;
};

inline lacuna_exchange_options c_options(const Exchange::Options& options) {
  return {options.schedule.c_str(), options.window, options.timeout_s};
}

}  // namespace detail
}  // namespace lacuna

#endif
