// lacuna::Error: the one way in which lacuna.hpp tells of errors. Include lacuna.hpp.
#ifndef LACUNA_ERROR_HPP
#define LACUNA_ERROR_HPP

#include <cstddef>
#include <stdexcept>
#include <string>

#include "../lacuna.h"

namespace lacuna {

class Error : public std::runtime_error {
 public:
  /// What the last failed call of this thread has to say.
  explicit Error(lacuna_status status) : Error(status, lacuna_error_message()) {}
  Error(lacuna_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] lacuna_status status() const noexcept { return status_; }

 private:
  lacuna_status status_;
};

/// "0.2.0": of the library, not of this header.
[[nodiscard]] inline std::string version() { return lacuna_version(); }

namespace detail {

inline void check(lacuna_status status) {
  if (status != LACUNA_OK) throw Error(status);
}
[[noreturn]] inline void refuse(const std::string& message) { throw Error(LACUNA_ERR_INVALID_ARGUMENT, message); }

// Of a function that writes at most so many bytes of a text with its NUL, and returns the length of the whole.
template <class Write>
std::string text_of(const Write& write) {
  std::string text(write(static_cast<char*>(nullptr), std::size_t{0}), '\0');
  write(text.data(), text.size() + 1);
  return text;
}

struct Free {
  void operator()(lacuna_layout* layout) const { lacuna_layout_free(layout); }
  void operator()(lacuna_team* team) const { lacuna_team_free(team); }
  void operator()(lacuna_device* device) const { lacuna_device_free(device); }
  void operator()(lacuna_device_plan* plan) const { lacuna_device_plan_free(plan); }
  void operator()(lacuna_guide* guide) const { lacuna_guide_free(guide); }
  void operator()(lacuna_comm* comm) const { lacuna_comm_free(comm); }
  void operator()(lacuna_exchange* exchange) const { lacuna_exchange_free(exchange); }
};

}  // namespace detail
}  // namespace lacuna

#endif
