// lacuna-device-bench: measures copies between layouts of device memory against the copy engine's ways, a kernel of one
// thread for each element, and a contiguous copy of as many sectors. Every row is verified. It writes JSON, one object
// a line:
//
//   lacuna-device-bench [--device cuda:0] [--payload MIB] [--groups vectors,ai] [--only TEXT] [--repeats 11]
//                       [--seconds 240] [--warm]
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/bench/device/bench.hpp"

using namespace lacuna;

namespace {

[[noreturn]] void usage(const std::string& why) {
  fmt::print(stderr,
             "lacuna-device-bench: {}\nusage: lacuna-device-bench [--device NAME] [--payload MIB] [--groups A,B] [--only TEXT] [--repeats "
             "N] [--seconds S] [--warm]\n",
             why);
  std::exit(2);
}

std::int64_t number(const char* text) {
  std::int64_t value = 0;
  const char* end = text + std::strlen(text);
  if (std::from_chars(text, end, value).ptr != end || value < 1) usage(fmt::format("'{}' is no number above 0", text));
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  bench::DeviceRequest request;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--warm") {
      request.warm = true;
      continue;
    }
    if (option == "--no-squares") {
      request.squares = false;
      continue;
    }
    if (option == "--attach" && i + 1 < argc) return bench::receive_from_another_process(argv[++i]);
    if (i + 1 == argc) usage(fmt::format("'{}' needs a value, or is unknown", option));
    const char* value = argv[++i];
    if (option == "--device")
      request.device = value;
    else if (option == "--payload")
      request.payload = number(value) << 20;
    else if (option == "--groups")
      request.groups = value;
    else if (option == "--only")
      request.only = value;
    else if (option == "--repeats")
      request.repeats = static_cast<int>(number(value));
    else if (option == "--seconds")
      request.seconds = number(value);
    else if (option == "--tile")
      request.tile_bytes = number(value);
    else if (option == "--windows")
      request.window_run = number(value);
    else
      usage(fmt::format("no option is called '{}'", option));
  }
  return bench::measure_device(request, argv[0]);
}
