// A variable of the environment for as long as a scope lasts; then it is what it was.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace lacuna::test {

class Set {
 public:
  Set(const char* name, const char* value) : name_(name) {
    if (const char* was = std::getenv(name)) was_ = was;
    setenv(name, value, 1);
  }
  ~Set() {
    if (was_) setenv(name_, was_->c_str(), 1);
    if (!was_) unsetenv(name_);
  }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
  std::optional<std::string> was_;
};

}  // namespace lacuna::test
