#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tools/measure/measure.hpp"

namespace lacuna::measure {
namespace {

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<Fault> fault_from_text(std::string_view text) {
  if (text.empty()) return Fault{};
  const std::size_t first = std::min(text.find(':'), text.size());
  const std::size_t second = std::min(text.find(':', first + 1), text.size());
  const std::string_view kind = text.substr(0, first);
  const std::string_view number = second < text.size() ? text.substr(second + 1) : "";
  Fault fault;
  if (std::int64_t skew = 0; kind == "skew" && read(text.substr(std::min(first + 1, text.size())), skew)) {
    fault.skew_ns = skew;
    return fault;
  }
  fault.method = text.substr(std::min(first + 1, text.size()), second - std::min(first + 1, second));
  const bool known = std::ranges::any_of(measured_methods(), [&](const method::Method& m) { return m.name == fault.method; });
  if (kind == "slow" && known && read(number, fault.slower) && fault.slower >= 1) return fault;
  fault.corrupt_from = 0;
  if (kind == "corrupt" && known && (number.empty() || (read(number, fault.corrupt_from) && fault.corrupt_from >= 0))) return fault;
  return base::fail(
      base::Code::invalid_argument,
      fmt::format(
          "\"{}\" is no fault; it is slow:METHOD:FACTOR, with a factor of at least 1, corrupt:METHOD[:TRANSFER] or skew:NANOSECONDS",
          text));
}

}  // namespace lacuna::measure
