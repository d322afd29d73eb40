// The rows of the table. Each file beside this one has some.
#pragma once

#include "tests/fuzz/fuzzer.hpp"

namespace lacuna::fuzz {

Fuzzer layout_wire();
Fuzzer method_target();
Fuzzer guide_way();
Fuzzer copy_kernels();
Fuzzer guide_profile();
Fuzzer guide_learned();
Fuzzer mpi_profile();
Fuzzer mpi_learned();
Fuzzer model_profile();
Fuzzer worker_request();
Fuzzer tcp_request();
Fuzzer tcp_answer();
Fuzzer tcp_hello();
Fuzzer bootstrap_message();
Fuzzer local_hello();
Fuzzer local_card();
Fuzzer verbs_hello();
Fuzzer ofi_hello();
Fuzzer protocol_heads();
Fuzzer protocol_access();
Fuzzer ring_channel();
Fuzzer mpi_descriptor();
Fuzzer mpi_note();
Fuzzer mpi_programs();
Fuzzer nixl_address();
Fuzzer nixl_words();

}  // namespace lacuna::fuzz
