// Prices of path wire where CPUs carry the bytes: a network that libfabric drives in software. Fitted by `lacuna guide
// --nic ofi:tcp` between two network namespaces, on two vCPUs of an AMD EPYC, libfabric 1.17, and rounded. What it does
// not have (indirect keys) stands at a sensible value.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::guide::usual {

// In the order of method::Price.
inline constexpr method::Prices kNetwork{
    118,   189,     4.92e+03, 4.27,   0.58,     629,      1.35e+03, 187,      249, 998,      49.7,     1.97,     7.31,     13,      0.0113,
    0.171, 0.481,   0.0112,   1,      3.08e+04, 1.64e+04, 1.12e+04, 1.22e+04, 380, 1.49e+04, 1.52e+04, 2.08e+03, 0.561,    0.508,   0.0606,
    0.15,  0.00566, 0.0106,   0.0196, 0.0264,   4.29,     1.5e+03,  10,       1,   1,        50,       7.84e+03, 2.09e+05, 5.24e+05};

}  // namespace lacuna::guide::usual
