#include "bench/messages/contenders.hpp"

namespace lacuna::bench {
namespace {

constexpr int kTag = 0;

void add_lacuna(Exchange& exchange, const Pair& pair, const Connection& connection) {
  protocol::Communicator* ranks = &connection.ranks();
  const int peer = pair.peer();
  const Exchange* e = &exchange;
  exchange.add({"lacuna",
                [=] {
                  if (const auto sent = ranks->send(e->send_base(), e->what().send.layout, peer, kTag); !sent)
                    throw Broken(sent.error().text());
                },
                [=] {
                  if (const auto got = ranks->recv(e->receive_base(), e->what().receive.layout, peer, kTag); !got)
                    throw Broken(got.error().text());
                }});
}

}  // namespace

Connection::Connection(const Pair& pair, const std::string& name) {
  const std::string nic = "local";
  context_ = must(nic::open(nic), "NIC");
  protocol::Options options;
  options.force = must(guide::Force::from_environment(), "LACUNA_METHOD, LACUNA_PATH");
  protocol::Group group = must(protocol::meet({.address = name, .size = Pair::kRanks, .rank = pair.rank()}), "meeting");
  ranks_ = must(protocol::Communicator::create(*context_, nic, std::move(group), std::move(options)), "connecting");
}

void add_contenders(Exchange& exchange, const Pair& pair, const Connection& connection) {
  add_lacuna(exchange, pair, connection);
  if (exchange.what().group == "contiguous") {
    exchange.add_bytes("mpi_contiguous");
    return;
  }
  exchange.add_datatype("mpi_datatype");
  exchange.add_by_hand("hand_elements", Form::elements);
  if (exchange.has_memcpy()) exchange.add_by_hand("hand_memcpy", Form::memcpy);
}

}  // namespace lacuna::bench
