/* The place of lacuna.h until 0.1. */
#include "../../lacuna.h"
