// message: sends and receives. It hides which protocol a message travels by.
//
//   sends.hpp      small: eager, into the channel ───────────────────────────────▶ receives.hpp   matched, and unpacked
//      ├── CPUs share memory: stream_transfers.hpp, packed before it is matched ──────┤
//      ├── else: announced; rendezvous_transfers.hpp, once the receiver has answered ─┤
//      └── to the own rank: self_messages.hpp, one copy from layout to layout ────────┘
#pragma once

#include "lacuna/protocol/message/receives.hpp"
#include "lacuna/protocol/message/rendezvous_transfers.hpp"
#include "lacuna/protocol/message/self_messages.hpp"
#include "lacuna/protocol/message/sends.hpp"
#include "lacuna/protocol/message/stream_transfers.hpp"
