#include "tools/bench/messages/contenders.hpp"

#include <array>

#include "tools/bench/job/by_lacuna.hpp"

namespace lacuna::bench {
namespace {

constexpr std::string_view kNic = "local";
constexpr std::int64_t kForcedFrom = 256;  // bytes: shorter ones are eager whatever method is forced
constexpr std::array kPaths{nic::Path::mapped, nic::Path::kernel};

// As the receiver of such a message will find: both ranks know it before they begin.
bool possible(const Case& what, const Connection::Forced& way) {
  const std::int64_t bytes = what.send.layout.size();
  if (way.options.way) {
    const nic::PathInfo* const kernel = way.ranks->context().limits().path(nic::Path::kernel);
    const bool copies = kernel != nullptr && kernel->available;
    return guide::message_way_refusal(*way.options.way, {.piece = guide::Piece::of(what.send.layout, 1), .copies = copies}, true).empty();
  }
  if (bytes <= kForcedFrom) return false;
  guide::Guide guide(way.options.force);
  const guide::PeerClass& peer = guide.add(way.ranks->context().limits(), guide::usual_profile(std::string(kNic)));
  return guide.choose(what.send.layout, what.receive.layout, peer, {.src_shared = false, .dst_shared = false, .uses = 1}).has_value();
}

}  // namespace

Connection::Connection(const Pair& pair, const std::string& name) : name_(name), rank_(pair.rank()) {
  context_ = must(nic::open(std::string(kNic)), "NIC");
  protocol::Options options;
  options.force = must(guide::Force::from_environment(), "LACUNA_METHOD, LACUNA_PATH");
  options.way = must(guide::message_way_of_environment(), "LACUNA_WAY");
  ranks_ = meet(name_, std::move(options));
}

std::unique_ptr<protocol::Communicator> Connection::meet(const std::string& name, protocol::Options options) const {
  protocol::Group group = must(protocol::form_group({.address = name, .size = Pair::kRanks, .rank = rank_}), "meeting");
  return must(protocol::Communicator::create(*context_, std::string(kNic), std::move(group), std::move(options)), "connecting");
}

std::vector<Connection::Forced>& Connection::forced() {
  if (!forced_.empty()) return forced_;
  for (std::size_t i = 0; i < guide::kMessageWays; ++i) {
    const auto way = static_cast<guide::MessageWay>(i);
    forced_.push_back({"way " + std::string(guide::message_way_name(way)), {.way = way}, nullptr});
  }
  for (const method::Method& method : method::methods())
    forced_.push_back({std::string(method.name), {.eager_bytes = kForcedFrom, .force = {.method = &method, .path = {}}}, nullptr});
  for (const nic::Path path : kPaths)
    forced_.push_back(
        {"path " + std::string(nic::path_name(path)), {.eager_bytes = kForcedFrom, .force = {.method = nullptr, .path = path}}, nullptr});
  for (Forced& way : forced_) way.ranks = meet(name_ + " " + way.name, way.options);
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
  if (!forced) return;
  for (const Connection::Forced& way : connection.forced())
    if (possible(exchange.what(), way)) add_lacuna(exchange, "forced_" + way.name, pair.peer(), *way.ranks);
}

}  // namespace lacuna::bench
