#pragma once

#include <cstdint>
#include <string>

namespace lacuna::bench {

struct DeviceRequest {
  std::string device = "cuda:0";
  std::int64_t payload = std::int64_t{64} << 20;
  std::string groups;  ///< those to measure, by commas; all if empty
  std::string only;    ///< rows with this in their names; all if empty
  int repeats = 11;
  std::int64_t seconds = 240;  ///< after which no row is begun
  bool warm = false;
  std::int64_t tile_bytes = 0;  ///< of transposes; 0 for what is usual
  bool squares = true;
  std::int64_t window_run = 0;  ///< from which on runs are moved in windows
};

/// The program's exit status: 1 if some row was wrong or the device could not be used.
int measure_device(const DeviceRequest& request, const char* program);
/// The other process of the rows of group "processes".
int receive_from_another_process(const char* share);

}  // namespace lacuna::bench
