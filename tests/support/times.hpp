// How often a text says something.
#pragma once

#include <string_view>

namespace lacuna::support {

inline int times(std::string_view text, std::string_view what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace lacuna::support
