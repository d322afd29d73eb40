#include "tests/support/tier.hpp"

#include <string_view>

namespace lacuna::test {
namespace {

bool in_support(const char* file) { return std::string_view(file).find("tests/support/") != std::string_view::npos; }

constexpr Build built() {
#if defined(__SANITIZE_ADDRESS__)
  return Build::address;
#elif defined(__SANITIZE_THREAD__)
  return Build::thread;
#else
  return Build::release;
#endif
}

}  // namespace

std::vector<Known>& labels() {
  static std::vector<Known> all;
  return all;
}

Label::Label(Tier tier, const char* pattern, const char* file) { labels().push_back({tier, false, pattern, in_support(file)}); }
Label::Label(Build leaves_out, const char* pattern, const char* file) {
  if (leaves_out == built()) labels().push_back({Tier::all, true, pattern, in_support(file)});
}

}  // namespace lacuna::test
