// Prices for NICs that nobody has measured: where a fit begins, and what holds until there is one.
//
// Fitted and rounded: two vCPUs of an AMD EPYC of 2022, wherever the hypervisor puts them: two threads of one core (a message of 16 KiB takes 1.4 us),
// near (2.7 us) and far apart (9 us), 1700 random pairs; and the simulated ConnectX-5 of the founding documents. Cold lines and bindings are estimates.
#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

using method::Prices;

// us: halfway between two of them, as factors.
constexpr double kNearFrom = 2;
constexpr double kFarFrom = 5;

// In the order of method::Price.
constexpr Prices kMappedShared{26.6,  59.8,   21.7, 3.68,   262,   198,    1.34,   33.6,   13.3,     11.5,     4.69,
                               0.001, 0.001,  13.8, 0.0139, 0.143, 0.01,   0.0796, 12.4,   530,      50,       218,
                               275,   20,     93.7, 18.2,   115,   0.361,  0.576,  0.0195, 0.599,    0.027,    0.762,
                               0.041, 0.0935, 15,   500,    10,    0.0646, 0.284,  104,    2.85e+06, 2.06e+07, 2.1e+06};
constexpr Prices kSlotsShared{4.53,   59.4,  4.38, 0.033,  204,   110,    0.348,  52.9,  10.1,     18.3,     0.0407,
                              0.001,  0.001, 25.3, 0.0308, 0.183, 0.0127, 0.0127, 13.1,  606,      100,      177,
                              288,    20,    213,  321,    130,   0.313,  0.554,  0.016, 0.612,    0.0269,   0.018,
                              0.0411, 0.213, 15,   500,    10,    0.1,    1,      110,   2.85e+06, 6.59e+06, 5.24e+05};
constexpr Prices kKernelShared{4.61,     1.46e+03, 41.5, 8.17,     50.4,   358,    21.3,   399,     39.7,     54.1,     89.1,
                               0.001,    0.001,    9.05, 0.0586,   0.0914, 0.0333, 0.0465, 29.1,    2.82e+03, 50,       301,
                               2.14e+03, 20,       12.7, 1.75e+03, 225,    0.631,  0.601,  0.00597, 1.12,     0.0128,   0.0327,
                               0.0322,   0.0505,   15,   500,      10,     1.61,   2.29,   884,     1.12e+05, 3.61e+06, 9.89e+05};
constexpr Prices kMappedNear{36.4,  35.5,   20.7,   3.91,   180,    110, 1.44, 31.3, 11.6, 6,     3.72, 0.001,    0.001,    6.54,    0.0189,
                             0.143, 0.0176, 0.0796, 8.34,   474,    50,  97.4, 96.8, 20,   188,   40.4, 124,      0.32,     0.287,   0.0343,
                             0.109, 0.0294, 0.762,  0.0351, 0.0935, 15,  500,  10,   4.81, 0.296, 84,   2.85e+06, 2.06e+07, 8.12e+05};
constexpr Prices kSlotsNear{12.8,  36.3,   3.9,    0.0332, 124,   100, 0.369, 59.9, 11.1, 18,  0.0433, 0.001,    0.001,    5.05,    0.093,
                            0.183, 0.0279, 0.0127, 9.92,   706,   100, 145,   204,  20,   218, 129,    107,      0.422,    0.272,   0.017,
                            0.154, 0.0183, 0.018,  0.0286, 0.213, 15,  500,   10,   4.9,  1,   131,    2.85e+06, 6.59e+06, 5.24e+05};
constexpr Prices kKernelNear{4.69,     1.3e+03, 40.3, 14,       44.5,   204,    22.3,   299,     29,       62.5,     38.6,
                             0.001,    0.001,   2.9,  0.0656,   0.0803, 0.0611, 0.0508, 8.21,    3.01e+03, 50,       141,
                             1.96e+03, 20,      13,   1.63e+03, 246,    0.366,  0.237,  0.00618, 0.279,    0.0202,   0.0393,
                             0.031,    0.0356,  15,   500,      10,     5.2,    2.69,   923,     5.72e+05, 3.65e+06, 8.31e+05};
constexpr Prices kMappedFar{102,   75.2,    21.8,   4.03,   226,    146, 1.62, 33.7, 12.4, 3.13, 2.35, 0.001,    0.001,    40.9,    0.027,
                            0.143, 0.00225, 0.0796, 10.6,   601,    50,  91.7, 3.91, 20,   409,  137,  250,      0.237,    0.44,    0.0416,
                            0.669, 0.0173,  0.763,  0.0801, 0.0935, 15,  500,  10,   23.6, 2.7,  112,  2.83e+06, 2.06e+07, 3.02e+06};
constexpr Prices kSlotsFar{104,    48.6,  3.91, 0.0306, 240,   7.39,   0.366,  189,    13.4,     25.3,     0.0324,
                           0.001,  0.001, 46.5, 0.442,  0.183, 0.0458, 0.0127, 8.83,   1.38e+03, 100,      77.4,
                           202,    20,    311,  241,    200,   0.0639, 0.32,   0.0196, 0.468,    0.0016,   0.0182,
                           0.0393, 0.213, 15,   500,    10,    20,     1,      282,    2.65e+06, 6.52e+06, 5.24e+05};
constexpr Prices kKernelFar{4.83,     1.25e+03, 40.9, 12.2,     72.5,   212,    20.6,   330,      43.2,     32.7,    34.8,
                            0.001,    0.001,    3.68, 0.0426,   0.0362, 0.0298, 0.0233, 23,       3.23e+03, 50,      166,
                            1.64e+03, 20,       13.7, 1.85e+03, 328,    0.192,  0.365,  0.00616,  0.716,    0.00956, 0.0175,
                            0.0802,   0.0489,   15,   500,      10,     29.2,   8.3,    1.12e+03, 1.13e+05, 3.9e+06, 2.68e+06};
constexpr Prices kWire{1.32e+03, 46.5,  60,       3.96,     0.571, 125,  3.08e+03, 380,    76.5,     31.6,     49.7,
                       1.97,     7.31,  23.6,     0.161,    0.1,   0.1,  0.1,      1,      3.19e+03, 800,      3.2e+03,
                       275,      100,   2.21e+03, 2.15e+03, 65.8,  13.5, 13.6,     0.0785, 0.154,    0.0717,   0.16,
                       0.0727,   0.164, 15,       1.5e+03,  10,    1,    1,        50,     1.14e+05, 1.79e+07, 5.24e+05};

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
