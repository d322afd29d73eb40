// The place of lacuna.hpp until 0.1.
#include "../../lacuna.hpp"
