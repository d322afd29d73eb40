// lacuna.hpp: Lacuna for C++20 programs. A thin layer over lacuna.h, which has the units and the rules. Objects own
// what they name. Whatever goes wrong is an exception of type lacuna::Error, which has lacuna.h's status and a
// sentence. Memory is named by an address and a Layout, or by whatever is shaped like a strided view: std::mdspan and
// its kin (data_handle(), rank(), extent(i), stride(i)), and contiguous ranges such as std::vector and std::span.
//
//   auto ranks = lacuna::Communicator::connect("job", {.size = 2});
//   if (ranks.rank() == 0) ranks.send(matrix, 1);          // an mdspan
//   else ranks.recv(column, 0);                            // any other shape of as many bytes
#ifndef LACUNA_HPP
#define LACUNA_HPP

#include "lacuna/communicator.hpp"
#include "lacuna/device.hpp"
#include "lacuna/error.hpp"
#include "lacuna/exchange.hpp"
#include "lacuna/guide.hpp"
#include "lacuna/layout.hpp"

#endif
