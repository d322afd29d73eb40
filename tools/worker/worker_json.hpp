// The worker's JSON lines (docs/design/worker.md): requests as it takes them, and what it says.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/measure.hpp"
#include "tools/worker/limits_json.hpp"

namespace lacuna::measure {

/// Rank 0 and rank 1 agree on it: its text travels, and both read it alike.
struct Request {
  std::int64_t id = 0;
  Case what;
  Budget budget;
  std::string shape;
  int key_entries = 0;  // of a request for keys; 0: to measure a case
};
/// Errors: invalid_argument (what is missing, or unknown), those of the case.
Result<Request> request_of(const std::string& text);

/// A line of standard output.
void print(const Json& line);
void print_report(const Request& request, std::string_view nic, const Report& report);

[[nodiscard]] Json describe_devices();
[[nodiscard]] Json describe_providers();
[[nodiscard]] Json describe_methods();
[[nodiscard]] Json describe_corpus();
[[nodiscard]] Json describe_ai(std::int64_t most_payload);

}  // namespace lacuna::measure
