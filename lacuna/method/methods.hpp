// The two ends of each method, for the table.
#pragma once

#include "lacuna/method/method.hpp"

namespace lacuna::method {

using Made = Result<std::unique_ptr<Operation>>;

Made pack_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made pack_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made pack_pipelined_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made pack_pipelined_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made gather_write_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made gather_write_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made multi_write_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made multi_write_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made sgrs_sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);
Made sgrs_receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory);

}  // namespace lacuna::method
