// memory: loads and stores of a kernel. On the CPU they are checked, and go where the emulated device keeps the bytes.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cstring>

#include "lacuna/device/emulated/memory.hpp"
#endif
#include "lacuna/device/kernel/parts.hpp"

namespace lacuna::device::kernel {

#if defined(__CUDACC_RTC__)

template <class T>
LACUNA_ON_DEVICE T load(u64 address) {
  return *reinterpret_cast<const T*>(address);
}
template <>
LACUNA_ON_DEVICE Word16 load<Word16>(u64 address) {
  const ulonglong2 word = *reinterpret_cast<const ulonglong2*>(address);
  return {word.x, word.y};
}
template <class T>
LACUNA_ON_DEVICE void store(u64 address, T value) {
  *reinterpret_cast<T*>(address) = value;
}
template <>
LACUNA_ON_DEVICE void store<Word16>(u64 address, Word16 value) {
  *reinterpret_cast<ulonglong2*>(address) = ulonglong2{value.low, value.high};
}
template <class T>
LACUNA_ON_DEVICE T listed(const u64* tables, u32 list, u32 i) {
  return __ldg(reinterpret_cast<const T*>(tables + list) + i);
}
LACUNA_ON_DEVICE u32 high_word(u32 a, u32 b) { return __umulhi(a, b); }
LACUNA_ON_DEVICE u32 ones(u32 bits) { return static_cast<u32>(__popc(bits)); }

#else

template <class T>
T load(u64 address) {
  T value;
  std::memcpy(&value, emulated::alias(address, sizeof(T), alignof(T)), sizeof(T));
  return value;
}
template <class T>
void store(u64 address, T value) {
  std::memcpy(emulated::alias(address, sizeof(T), alignof(T)), &value, sizeof(T));
}
template <class T>
T listed(const u64* tables, u32 list, u32 i) {
  return load<T>(reinterpret_cast<u64>(tables) + u64{list} * 8 + u64{i} * sizeof(T));
}
inline u32 high_word(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
inline u32 ones(u32 bits) { return static_cast<u32>(__builtin_popcount(bits)); }

#endif

}  // namespace lacuna::device::kernel
