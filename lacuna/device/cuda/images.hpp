// images: the kernels' code for GPUs, which cmake/compile_kernels.py makes at build time.
#pragma once

#include <cstddef>
#include <span>

namespace lacuna::device::cuda {

struct Image {
  /// 90 for sm_90: code for it and later ones of its generation (8.x, 9.x); with ptx, for any later one
  int architecture;
  bool ptx;
  struct {
    const unsigned char* data;
    std::size_t bytes;
  } code;
};

[[nodiscard]] std::span<const Image> images();

}  // namespace lacuna::device::cuda
