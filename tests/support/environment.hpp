// A variable of the environment for as long as a scope lasts.
#pragma once

#include <cstdlib>

namespace lacuna::test {

class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Set() { unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

}  // namespace lacuna::test
