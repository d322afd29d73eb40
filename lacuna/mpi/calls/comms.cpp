// What makes communicators and frees them: the ranks of one have to call it by one name (process/order.hpp).
#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

enum Birth : std::size_t {
  by_dup,
  by_dup_with_info,
  by_create,
  by_split,
  by_split_type,
  by_cart,
  by_cart_sub,
  by_graph,
  by_dist_graph,
  by_adjacent,
  births
};
static_assert(births == Comms::kBirths);

// Counted also where it failed, and on ranks that get none, since others may have got one.
int made(int result, Comm parent, Birth birth, const Comm* comm) {
  if (takes_messages(job)) job->comms->born(parent, birth, result == kSuccess ? *comm : host().no_comm);
  return result;
}

int freed(Comm* comm, int (*free)(Comm*)) {
  if (takes_messages(job)) job->comms->gone(*comm);
  return free(comm);
}

}  // namespace

LACUNA_MPI_CALL(Comm_dup, (Comm comm, Comm* to)) { return made(host().Comm_dup(comm, to), comm, by_dup, to); }
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_dup_with_info, (Comm comm, Info info, Comm* to)) {
  return made(host().Comm_dup_with_info(comm, info, to), comm, by_dup_with_info, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_create, (Comm comm, Group group, Comm* to)) { return made(host().Comm_create(comm, group, to), comm, by_create, to); }
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_split, (Comm comm, int color, int key, Comm* to)) {
  return made(host().Comm_split(comm, color, key, to), comm, by_split, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_split_type, (Comm comm, int type, int key, Info info, Comm* to)) {
  return made(host().Comm_split_type(comm, type, key, info, to), comm, by_split_type, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Cart_create, (Comm comm, int dims, const int* sizes, const int* periods, int reorder, Comm* to)) {
  return made(host().Cart_create(comm, dims, sizes, periods, reorder, to), comm, by_cart, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Cart_sub, (Comm comm, const int* remains, Comm* to)) {
  return made(host().Cart_sub(comm, remains, to), comm, by_cart_sub, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Graph_create, (Comm comm, int nodes, const int* index, const int* edges, int reorder, Comm* to)) {
  return made(host().Graph_create(comm, nodes, index, edges, reorder, to), comm, by_graph, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Dist_graph_create, (Comm comm, int n, const int* sources, const int* degrees, const int* destinations, const int* weights,
                                    Info info, int reorder, Comm* to)) {
  return made(host().Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, to), comm, by_dist_graph, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Dist_graph_create_adjacent, (Comm comm, int in, const int* sources, const int* in_weights, int out, const int* destinations,
                                             const int* out_weights, Info info, int reorder, Comm* to)) {
  return made(host().Dist_graph_create_adjacent(comm, in, sources, in_weights, out, destinations, out_weights, info, reorder, to), comm,
              by_adjacent, to);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_free, (Comm * comm)) { return freed(comm, host().Comm_free); }
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Comm_disconnect, (Comm * comm)) { return freed(comm, host().Comm_disconnect); }
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
