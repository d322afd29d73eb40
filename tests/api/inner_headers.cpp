// with WRONG: lacuna/layout/layout.hpp
// The layers' own headers are not among those of users. The places that lacuna.h and lacuna.hpp had until 0.1 are.
#include <lacuna/c/lacuna.h>
#include <lacuna/c/lacuna.hpp>
#ifdef WRONG
#include <lacuna/layout/layout.hpp>
#endif

int main() { return lacuna::Layout::bytes(8).size() == 8 ? 0 : 1; }
