// Times of the ways of messages on machines that have no profile: `lacuna guide` measured them on the machine that the
// first lines of usual_messages/epyc.inc name (scripts/usual_ways.py writes it).
#include "lacuna/guide/message_ways.hpp"

namespace lacuna::guide {

MessagePrices MessagePrices::make_usual() {
  MessagePrices made;
  const auto sheet = [&](bool listed, MessageWay way, std::initializer_list<double> ns) {
    made.sheets_.at(listed ? 1 : 0).at(static_cast<std::size_t>(way)) = Sheet(ns);
  };
#include "lacuna/guide/usual_messages/epyc.inc"
  return made;
}

const MessagePrices& MessagePrices::usual() {
  static const MessagePrices all = make_usual();
  return all;
}

}  // namespace lacuna::guide
