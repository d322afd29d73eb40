#include "tools/bench/messages/contenders.hpp"

#include <array>

namespace lacuna::bench {
namespace {

constexpr int kTag = 0;
constexpr std::string_view kNic = "local";
constexpr std::int64_t kForcedFrom = 256;  // bytes: shorter ones are eager whatever is forced
constexpr std::array kPaths{nic::Path::mapped, nic::Path::kernel};

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

// As the receiver of such a message will find: both ranks know it before they begin.
bool possible(const Case& what, const Connection::Forced& way) {
  guide::Guide guide(way.force);
  const guide::PeerClass& peer = guide.add(way.ranks->context().limits(), guide::usual_profile(std::string(kNic)));
  return guide.choose(what.send.layout, what.receive.layout, peer, {.src_shared = false, .dst_shared = false, .uses = 1}).has_value();
}

}  // namespace

Connection::Connection(const Pair& pair, const std::string& name) : name_(name), rank_(pair.rank()) {
  context_ = must(nic::open(std::string(kNic)), "NIC");
  protocol::Options options;
  options.force = must(guide::Force::from_environment(), "LACUNA_METHOD, LACUNA_PATH");
  ranks_ = meet(name_, std::move(options));
}

std::unique_ptr<protocol::Communicator> Connection::meet(const std::string& name, protocol::Options options) const {
  protocol::Group group = must(protocol::form_group({.address = name, .size = Pair::kRanks, .rank = rank_}), "meeting");
  return must(protocol::Communicator::create(*context_, std::string(kNic), std::move(group), std::move(options)), "connecting");
}

std::vector<Connection::Forced>& Connection::forced() {
  if (!forced_.empty()) return forced_;
  for (const method::Method& method : method::methods())
    forced_.push_back({std::string(method.name), {.method = &method, .path = {}}, nullptr});
  for (const nic::Path path : kPaths)
    forced_.push_back({"path " + std::string(nic::path_name(path)), {.method = nullptr, .path = path}, nullptr});
  for (Forced& way : forced_) way.ranks = meet(name_ + " " + way.name, {.eager_bytes = kForcedFrom, .force = way.force});
  return forced_;
}

void add_contenders(Exchange& exchange, const Pair& pair, Connection& connection, bool forced) {
  add_lacuna(exchange, "lacuna", pair.peer(), connection.ranks());
  if (exchange.what().group == "contiguous") {
    exchange.add_bytes("mpi_contiguous");
  } else {
    exchange.add_datatype("mpi_datatype");
    exchange.add_by_hand("hand_elements", Form::elements);
    if (exchange.has_memcpy()) exchange.add_by_hand("hand_memcpy", Form::memcpy);
  }
  if (!forced || exchange.what().send.layout.size() <= kForcedFrom) return;
  for (const Connection::Forced& way : connection.forced())
    if (possible(exchange.what(), way)) add_lacuna(exchange, "forced_" + way.name, pair.peer(), *way.ranks);
}

}  // namespace lacuna::bench
