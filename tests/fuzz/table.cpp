#include <array>

#include "tests/fuzz/rows/rows.hpp"

namespace lacuna::fuzz {

std::span<const Fuzzer> fuzzers() {
  static const std::array all{
      layout_wire(),    method_target(),  guide_way(),   copy_kernels(), guide_profile(), guide_learned(),     mpi_profile(),
      mpi_learned(),    model_profile(),  tcp_request(), tcp_answer(),   tcp_hello(),     bootstrap_message(), local_card(),
      worker_request(), nixl_address(),   local_hello(), verbs_hello(),  ofi_hello(),     protocol_heads(),    protocol_access(),
      ring_channel(),   mpi_descriptor(), mpi_note(),    mpi_programs(), nixl_words(),
  };
  return all;
}

}  // namespace lacuna::fuzz
