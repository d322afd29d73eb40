// A child process that does something and says what went wrong.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>

namespace lacuna::test {

class Child {
 public:
  /// Begins at once. What `work` returns is what it says.
  explicit Child(const std::function<std::string()>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Waits for its end: what it said, and how it ended if that is not as it should: in good order, or by
  /// `expected_signal`. One that does not end is killed.
  std::string end(int expected_signal = 0);

 private:
  bool hear(std::string& words) const;

  std::array<int, 2> pipe_{-1, -1};
  pid_t pid_ = -1;
};

}  // namespace lacuna::test
