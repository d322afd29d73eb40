// A stand-in for NVIDIA's driver, of which the interposer only asks what an address is. A test says so.
#include <cstdint>
#include <cstring>

extern "C" {

/// The allocation that has an address; false: none.
using Owner = bool (*)(std::uint64_t at, std::uint64_t* start, std::uint64_t* bytes);

__attribute__((visibility("default"))) Owner lacuna_stub_owner = nullptr;

/// As cuda.h has it. Attributes: 2 the type of memory, 8 whether it is managed, 11 and 12 where its range begins and
/// how long it is.
__attribute__((visibility("default"))) int cuPointerGetAttributes(unsigned number, int* attributes, void** values, std::uint64_t at) {
  if (lacuna_stub_owner == nullptr) return 3;  // CUDA_ERROR_NOT_INITIALIZED
  std::uint64_t start = 0, bytes = 0;
  const bool owned = lacuna_stub_owner(at, &start, &bytes);
  for (unsigned i = 0; i < number; ++i) {
    const std::uint32_t type = owned ? 2 : 0, managed = 0;
    switch (attributes[i]) {
      case 2: std::memcpy(values[i], &type, sizeof type); break;
      case 8: std::memcpy(values[i], &managed, sizeof managed); break;
      case 11: std::memcpy(values[i], &start, sizeof start); break;
      case 12: std::memcpy(values[i], &bytes, sizeof bytes); break;
      default: return 1;  // CUDA_ERROR_INVALID_VALUE
    }
  }
  return 0;
}
}
