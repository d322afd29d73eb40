// The fault that a test has planted, to see that it is noticed.
#pragma once

namespace lacuna::bench {

/// Null in a bench that is installed, which does not look for any (cmake/message_bench.cmake).
const char* planted_fault();

}  // namespace lacuna::bench
