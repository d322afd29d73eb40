// Prices for NICs that nobody has measured: where a fit begins, and what holds until there is one.
//
// Fitted and rounded: two vCPUs of an AMD EPYC of 2022, wherever the hypervisor puts them: two threads of one core (a message of 16 KiB takes 1.4 us),
// near (2.7 us) and far apart (9 us); and the simulated ConnectX-5 of the founding documents. Cold lines and bindings are estimates.
#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

using method::Prices;

// us: halfway between two of them, as factors.
constexpr double kNearFrom = 2;
constexpr double kFarFrom = 5;

// In the order of method::Price.
constexpr Prices kMappedShared{74.9,   60.7,    21.3,  4.25,   230,   232,    0.881, 32.7, 11.4, 10.3, 6.4,      0.001,   0.001, 19.7,
                               0.0115, 0.143,   0.011, 0.0796, 11.7,  560,    50,    237,  295,  20,   98.5,     14.3,    76.6,  0.355,
                               0.586,  0.00429, 0.651, 0.0274, 0.748, 0.0412, 0.102, 15,   500,  10,   2.69e+06, 2.02e+07};
constexpr Prices kSlotsShared{30.8,   61.7,    44.3,   0.0371, 153,    192,    0.32,   13.1, 8.1, 13.4, 0.0472,   0.001,  0.001, 28.3,
                              0.0141, 0.0464,  0.0171, 0.0238, 14,     805,    100,    246,  368, 20,   139,      253,    92.7,  0.381,
                              0.622,  0.00596, 0.773,  0.0185, 0.0472, 0.0339, 0.0539, 15,   500, 10,   5.73e+04, 6.8e+06};
constexpr Prices kKernelShared{4.82, 1.52e+03, 41,       4,      63.7,   383,      14.7,   410,   35.5,     49.4,
                               112,  0.001,    0.001,    26.6,   0.0774, 0.0864,   0.0757, 0.066, 32.5,     3.06e+03,
                               50,   334,      2.17e+03, 20,     10.8,   1.78e+03, 200,    0.631, 0.619,    0.0051,
                               1.13, 0.00723,  0.0414,   0.0315, 0.0464, 15,       500,    10,    5.47e+04, 3.81e+06};
constexpr Prices kMappedNear{70.2,   35.1,   23.1,   1.92,   121,   137,    1.88,  37.2, 11.3, 8.05, 5.91,     0.001,   0.001, 7.68,
                             0.0717, 0.143,  0.0189, 0.0796, 6.85,  458,    50,    125,  126,  20,   134,      21,      66.7,  0.369,
                             0.352,  0.0174, 0.379,  0.0413, 0.748, 0.0291, 0.102, 15,   500,  10,   2.69e+06, 2.02e+07};
constexpr Prices kSlotsNear{43.6,   27.6,   7.05,  0.0418, 116,    110,    0.45,  63.3, 5.77, 9.5, 0.061,    0.001,   0.001, 23.7,
                            0.0835, 0.183,  0.022, 0.0127, 10.5,   686,    100,   150,  207,  20,  177,      118,     68.6,  0.384,
                            0.273,  0.0257, 0.132, 0.0205, 0.0178, 0.0237, 0.231, 15,   500,  10,  1.72e+06, 6.06e+06};
constexpr Prices kKernelNear{5.11,  1.32e+03, 40.9,  11.4,   80.4,   113,      22.4,   335, 28,       36.9, 46.4,    0.001,    0.001, 7.01,
                             0.125, 0.0519,   0.13,  0.0576, 9.37,   3.19e+03, 50,     105, 1.81e+03, 20,   13.8,    1.43e+03, 171,   0.333,
                             0.328, 0.00731,  0.276, 0.0344, 0.0383, 0.0273,   0.0251, 15,  500,      10,   4.4e+05, 4.01e+06};
constexpr Prices kMappedFar{122,   76.1,   24.9,   3.78,    128,   150,    44.1,   42.3, 9.81, 3.82, 3.32,     0.001,   0.001, 106,
                            0.323, 0.252,  0.0149, 0.00702, 11.7,  566,    50,     101,  2.22, 20,   248,      32.8,    182,   0.143,
                            0.385, 0.0918, 0.107,  0.0954,  0.201, 0.0838, 0.0473, 15,   500,  10,   5.74e+05, 1.22e+06};
constexpr Prices kSlotsFar{94.6,  86,     129,    0.0632,  101,    46.1,     2.12,   49.8, 9.68, 17.2, 0.0551,   0.001,   0.001, 156,
                           0.24,  0.399,  0.166,  0.00156, 9.03,   1.55e+03, 100,    129,  291,  20,   20.9,     13.6,    133,   0.178,
                           0.354, 0.0304, 0.0798, 0.00126, 0.0118, 0.00269,  0.0395, 15,   500,  10,   2.11e+03, 1.38e+05};
constexpr Prices kKernelFar{151,   1.22e+03, 58.9,  7.45,   101,   181,      22,    295,  40.9,     43.5, 85.4,    0.001,    0.001, 127,
                            0.356, 0.175,    0.102, 0.107,  25.4,  3.07e+03, 50,    75.7, 1.49e+03, 20,   374,     1.82e+03, 273,   0.268,
                            0.32,  0.0788,   0.199, 0.0702, 0.241, 0.0797,   0.023, 15,   500,      10,   2.5e+05, 7.98e+06};
constexpr Prices kWire{1.32e+03, 46.5,   60,    3.96,   0.571, 125,      3.08e+03, 380,     76.5,    31.6, 49.7,     1.97,     7.31, 23.6,
                       0.161,    0.1,    0.1,   0.1,    1,     3.19e+03, 800,      3.2e+03, 275,     100,  2.21e+03, 2.15e+03, 65.8, 13.5,
                       13.6,     0.0785, 0.154, 0.0717, 0.16,  0.0727,   0.164,    15,      1.5e+03, 10,   1.14e+05, 1.79e+07};

}  // namespace

const Prices& usual_prices(nic::Path path, double message_us) {
  const bool known = message_us > 0;
  const bool shared = known && message_us < kNearFrom;
  const bool near = known && message_us < kFarFrom && !shared;
  switch (path) {
    case nic::Path::mapped: return shared ? kMappedShared : near ? kMappedNear : kMappedFar;
    case nic::Path::slots: return shared ? kSlotsShared : near ? kSlotsNear : kSlotsFar;
    case nic::Path::kernel: return shared ? kKernelShared : near ? kKernelNear : kKernelFar;
    case nic::Path::wire: break;
  }
  return kWire;
}

}  // namespace lacuna::guide
