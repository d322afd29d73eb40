// What a queue pair's functions are.
#pragma once

#include "tests/support/mlx5/fabric.hpp"

namespace lacuna::test::mlx5 {

void fill_builders(Pair& pair);
int post_send(ibv_qp* held, ibv_send_wr* first, ibv_send_wr** refused);
int post_recv(ibv_qp* held, ibv_recv_wr* first, ibv_recv_wr** refused);

}  // namespace lacuna::test::mlx5
