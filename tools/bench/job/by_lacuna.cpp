#include "tools/bench/job/by_lacuna.hpp"

namespace lacuna::bench {
namespace {

constexpr int kTag = 0;

}  // namespace

void add_lacuna(Exchange& exchange, const std::string& name, int peer, protocol::Communicator& communicator) {
  protocol::Communicator* ranks = &communicator;
  const Exchange* e = &exchange;
  exchange.add({name,
                [=] {
                  if (const auto sent = ranks->send(e->send_base(), e->what().send.layout, peer, kTag); !sent)
                    throw Broken(sent.error().text());
                },
                [=] {
                  if (const auto got = ranks->recv(e->receive_base(), e->what().receive.layout, peer, kTag); !got)
                    throw Broken(got.error().text());
                }});
}

}  // namespace lacuna::bench
