#include "tools/bench/mpi/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/bench/mpi/commit.hpp"

namespace lacuna::bench {
namespace {

using nlohmann::json;

constexpr std::int64_t kSmallest = 8;  // bytes: what the smallest message costs

std::vector<MessageCase> make_cases() {
  std::vector<MessageCase> all = {contiguous_case(kSmallest)};
  std::ranges::move(ddtbench_cases(), std::back_inserter(all));
  return all;
}

// DDTBench's names. manual has two loops, of which the faster counts.
void add_methods(Exchange& exchange) {
  if (exchange.what().group == "contiguous") {
    exchange.add_bytes("reference");
    return;
  }
  exchange.add_by_hand("manual_elements", Form::elements);
  if (exchange.has_memcpy()) exchange.add_by_hand("manual_memcpy", Form::memcpy);
  exchange.add_datatype("mpi_ddt");
  exchange.add_mpi_pack("mpi_pack_ddt");
  exchange.add_packed("reference");
}

template <class T>
std::size_t checked(std::size_t index, const std::vector<T>& of, const char* what) {
  if (index >= of.size()) throw std::invalid_argument(fmt::format("there is no {} {}", what, index));
  return index;
}

}  // namespace

const std::vector<MessageCase>& mpi_cases() {
  static const std::vector<MessageCase> all = make_cases();
  return all;
}

json Session::answer(const json& command) {
  if (command.contains("open")) return open(command["open"].get<std::size_t>());
  if (command.contains("close")) {
    close();
    return json::object();
  }
  if (command.contains("commit")) {
    if (pair_.rank() != 0) return json::object();
    return {{"us", commit_times(pair_.mpi(), command["commit"].get<int>(), command.at("blocks").get<int>(),
                                command.at("seed").get<std::uint64_t>())}};
  }
  return turn(command);
}

json Session::open(std::size_t index) {
  const MessageCase& what = mpi_cases()[checked(index, mpi_cases(), "case")];
  close();
  exchange_ = open_exchange(what, pair_, &add_methods);
  if (pair_.rank() != 0) return json::object();
  asker_.emplace(*exchange_, pair_);
  json names = json::array();
  for (const Messenger& messenger : exchange_->messengers()) names.push_back(messenger.name);
  return {{"contenders", names}, {"refused", exchange_->refused()}};
}

json Session::turn(const json& command) {
  if (exchange_ == nullptr) throw std::invalid_argument("no case is open");
  const auto contender = [&](const char* key) { return checked(command[key].get<std::size_t>(), exchange_->messengers(), "contender"); };
  std::function<json(Asker&)> ask;
  if (command.contains("verify")) {
    ask = [i = contender("verify")](Asker& asker) {
      asker.verify(i);
      return json::object();
    };
  } else if (command.contains("pace")) {
    ask = [](Asker& asker) {
      asker.choose_trips();
      return json::object();
    };
  } else if (command.contains("batch")) {
    ask = [i = contender("batch")](Asker& asker) { return json{{"us", asker.batch(i) / 1e3}}; };
  } else {
    throw std::invalid_argument("unknown command " + command.dump());
  }
  if (asker_) return asking(*asker_, [&] { return ask(*asker_); });
  answer_turns(*exchange_, pair_);
  return json::object();
}

void Session::close() {
  asker_.reset();
  exchange_.reset();
}

}  // namespace lacuna::bench
