// Prices for NICs that nobody has measured: where a fit begins, and what holds until there is one.
//
// Fitted to random pairs and rounded: two vCPUs of an AMD EPYC of 2022, wherever the hypervisor puts them: two threads
// of one core (a message of 16 KiB takes 1.4 us, 158 pairs), near (2.7 us, 1246) and far apart (9 us, 596); the
// simulated ConnectX-5 of the paper; and a network that CPUs carry: libfabric 1.17, provider tcp, between two network
// namespaces. Cold lines and bindings are estimates. What no cost item reads stands at a sensible value: lines between
// caches of path slots, whose lines always change caches, so that its bytes contain them, and of path wire.
//
// Those pairs have 1 MiB at most. So the prices of bytes beyond the caches, and from where to where a copy leaves these
// (near_bytes, far_bytes), are of an EPYC of 2024 with a last-level cache of 32 MiB: on one core fitted to 120 random
// pairs of 1 to 32 MiB; near (4.2 us) to 24 of `lacuna bench kv`. Far apart was not measured: there what the kernel
// moves from or to memory has the near ones' price, and no other price was changed (docs/notes/kv-cache.md).
#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

using method::Prices;

// us: halfway between two of them, as factors.
constexpr double kNearFrom = 2;
constexpr double kFarFrom = 5;

// In the order of method::Price.
constexpr Prices kMappedShared{26.8,  59.8,   21.7, 3.68,   262,    198,     1.12,   33.6,  13.3,  11.5,    4.69,
                               0.001, 0.001,  13.8, 0.0139, 0.0547, 0.00879, 0.0656, 12.4,  530,   50,      217,
                               275,   20,     93.4, 18.1,   115,    0.362,   0.58,   0.018, 0.601, 0.027,   0.0575,
                               0.041, 0.0796, 15,   500,    10,     0.0661,  0.365,  104,   8e+06, 6.4e+07, 2.23e+06};
constexpr Prices kSlotsShared{4.43,  59.4,   2.9,    0.0273, 204,    110, 0.3, 54.4, 10.1, 18.3, 0.032, 0.001,   0.001,   25.3,    0.0308,
                              0.063, 0.0127, 0.0544, 13.1,   604,    100, 177, 288,  20,   214,  322,   130,     0.314,   0.555,   0.0129,
                              0.616, 0.0269, 0.0682, 0.0411, 0.0709, 15,  500, 10,   0.1,  1,    110,   1.6e+07, 6.4e+07, 5.24e+05};
constexpr Prices kKernelShared{4.23,     1.45e+03, 41.5, 8.65,     34.7,  372,    21,    398,     41,       55.1,    89.7,
                               0.001,    0.001,    9.32, 0.0601,   0.131, 0.0242, 0.164, 28.3,    2.83e+03, 50,      312,
                               2.15e+03, 20,       12,   1.73e+03, 225,   0.624,  0.61,  0.00484, 1.13,     0.0131,  0.0372,
                               0.0321,   0.0642,   15,   500,      10,    1.5,    3.02,  884,     4e+06,    3.2e+07, 9.43e+05};
constexpr Prices kMappedNear{36.8,  35.4,   20.8,   3.88,   181,    109, 1.19, 31.4, 11.4, 6.16,  3.69, 0.001,    0.001,   6.52,    0.0214,
                             0.14,  0.0157, 0.0923, 8.39,   474,    50,  95.7, 95.4, 20,   187,   40.6, 122,      0.322,   0.325,   0.0296,
                             0.121, 0.0289, 0.029,  0.0349, 0.0367, 15,  500,  10,   4.67, 0.415, 84.8, 2.86e+06, 6.4e+07, 8.72e+05};
constexpr Prices kSlotsNear{12.1,  36.4,   2.67,   0.0274, 124,    100, 0.316, 61.1, 11.2, 18.1, 0.0336, 0.001, 0.001,   4.94,    0.093,
                            0.131, 0.0279, 0.0279, 9.93,   705,    100, 145,   205,  20,   219,  131,    107,   0.424,   0.274,   0.0135,
                            0.156, 0.0182, 0.0182, 0.0286, 0.0648, 15,  500,   10,   4.9,  1,    132,    8e+06, 6.4e+07, 5.24e+05};
constexpr Prices kKernelNear{4.3,      1.28e+03, 40.3, 14.2,     31.4,  217,    21.9,  297,     30,       63.6,    38.5,
                             0.001,    0.001,    3.4,  0.0721,   0.166, 0.0415, 0.192, 8.14,    3.06e+03, 50,      153,
                             1.97e+03, 20,       12.3, 1.63e+03, 245,   0.36,   0.266, 0.00498, 0.293,    0.0212,  0.0212,
                             0.0304,   0.062,    15,   500,      10,    4.76,   4.04,  927,     1e+06,    3.2e+07, 8.64e+05};
constexpr Prices kMappedFar{95.2,  74.2,    21.9,   3.87,   233,    142, 1.33, 33.9, 12.4, 3.39, 2.33, 0.001,    0.001,    41.2,    0.0304,
                            0.143, 0.00192, 0.0796, 10.6,   601,    50,  88,   5.13, 20,   408,  136,  243,      0.241,    0.438,   0.037,
                            0.669, 0.0183,  0.763,  0.0804, 0.0935, 15,  500,  10,   23.3, 2.71, 118,  2.82e+06, 2.06e+07, 3.56e+06};
constexpr Prices kSlotsFar{104,    47.9,  2.64, 0.0256, 241,   7.44,   0.314,  191,    13.4,     25.2,     0.0266,
                           0.001,  0.001, 46.7, 0.442,  0.183, 0.0457, 0.0127, 8.83,   1.38e+03, 100,      77.3,
                           201,    20,    313,  243,    200,   0.0647, 0.32,   0.0152, 0.473,    0.0016,   0.0182,
                           0.0393, 0.213, 15,   500,    10,    20,     1,      282,    2.67e+06, 6.52e+06, 5.24e+05};
constexpr Prices kKernelFar{4.38,     1.22e+03, 40.9, 12.4,     56.3,  227,    20.6,  330,      43.7,     33.6,     34.8,
                            0.001,    0.001,    4.63, 0.0445,   0.166, 0.0251, 0.192, 22.9,     3.23e+03, 50,       173,
                            1.64e+03, 20,       12.9, 1.85e+03, 325,   0.194,  0.368, 0.00497,  0.718,    0.0104,   0.0152,
                            0.0801,   0.0497,   15,   500,      10,    29.1,   8.59,  1.13e+03, 1.17e+05, 3.48e+06, 3.54e+06};
constexpr Prices kWire{1.32e+03, 46.5,  60,       3.96,     0.571, 125,  3.08e+03, 380,    76.5,     31.6,     49.7,
                       1.97,     7.31,  23.6,     0.161,    0.1,   0.1,  0.1,      1,      3.19e+03, 800,      3.2e+03,
                       275,      100,   2.21e+03, 2.15e+03, 65.8,  13.5, 13.6,     0.0785, 0.154,    0.0717,   0.16,
                       0.0727,   0.164, 15,       1.5e+03,  10,    1,    1,        50,     1.14e+05, 1.79e+07, 5.24e+05};
constexpr Prices kCarriedWire{118,      189,    4.92e+03, 4.27,     0.58,     629,   1.35e+03, 187,    249,      998,      49.7,
                              1.97,     7.31,   13,       0.0113,   0.171,    0.481, 0.0112,   1,      3.08e+04, 1.64e+04, 1.12e+04,
                              1.22e+04, 380,    1.49e+04, 1.52e+04, 2.08e+03, 0.561, 0.508,    0.0606, 0.15,     0.00566,  0.0106,
                              0.0196,   0.0264, 4.29,     1.5e+03,  10,       1,     1,        50,     7.84e+03, 2.09e+05, 5.24e+05};

}  // namespace

const Prices& usual_prices(nic::Path path, double message_us, nic::Mover mover) {
  const bool known = message_us > 0;
  const bool shared = known && message_us < kNearFrom;
  const bool near = known && message_us < kFarFrom && !shared;
  switch (path) {
    case nic::Path::mapped: return shared ? kMappedShared : near ? kMappedNear : kMappedFar;
    case nic::Path::slots: return shared ? kSlotsShared : near ? kSlotsNear : kSlotsFar;
    case nic::Path::kernel: return shared ? kKernelShared : near ? kKernelNear : kKernelFar;
    case nic::Path::wire: break;
  }
  return mover == nic::Mover::both ? kCarriedWire : kWire;
}

}  // namespace lacuna::guide
