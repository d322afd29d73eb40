// What is moved: layouts of device memory, of as many bytes of payload as asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::bench {

/// A side as torch and CuPy would write it: a strided array of items, or rows of one that a list picks. Empty where
/// neither can.
struct ArrayForm {
  std::int64_t item = 0;                     ///< bytes: 1, 2, 4, 8 or 16; 0 where there is no such form
  std::vector<std::int64_t> shape, strides;  ///< strides in items
  std::int64_t list_of = 0;                  ///< shape[0] rows of so many, picked by a list; 0 if there is no list
};

struct DeviceRow {
  std::string group;
  std::string name;
  layout::Layout from;
  layout::Layout to;
  ArrayForm from_array;  ///< of a pack: `to` is contiguous
  ArrayForm to_array;    ///< of an unpack: `from` is
};

/// All rows of about `payload` bytes (fewer where the memory between their bytes would be more than 1 GiB). A row is
/// made when its turn comes.
struct RowMaker {
  std::string group;
  std::string name;
  DeviceRow (*make)(const RowMaker& maker, std::int64_t payload);
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::string text;
};
std::vector<RowMaker> device_rows();

/// 26 faces, edges and corners of a box of n^3 doubles with one layer of ghosts, each into a buffer of its own.
std::vector<layout::Layout> faces(std::int64_t n);

}  // namespace lacuna::bench
