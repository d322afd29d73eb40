// player: one rank of a story: begins its steps, ends them, and compares what came with what was sent.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/collective/collective.hpp"
#include "tests/simulate/judge.hpp"
#include "tests/simulate/piece.hpp"
#include "tests/simulate/unlucky.hpp"

namespace lacuna::simulate {

class Player {
 public:
  Player(Stage& stage, Unlucky& nic, protocol::Communicator& ranks);
  void play();

 private:
  using Request = protocol::Request;
  enum class Role : std::uint8_t { sends, receives, puts, gets };
  struct Begun {
    const Step* step = nullptr;
    Role role{};
    Request* request = nullptr;
    std::unique_ptr<Piece> piece;
  };
  struct Exchanging {
    const Step* step = nullptr;
    std::vector<std::unique_ptr<Piece>> sends, receives;
    std::unique_ptr<collective::Exchange> exchange;
  };

  [[nodiscard]] int rank() const { return ranks_.rank(); }
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    stage_.fate.trace.say(nic_.time(), rank(), format, std::forward<Args>(args)...);
  }
  void wrong(const std::string& what);
  void failed(const Step& step, const char* what, const base::Error& error);
  [[nodiscard]] bool gone() const { return nic_.dead() || nic_.hung(); }

  // The story from its beginning to its end.
  bool open();
  void perform();
  void leave();
  bool meet(const char* what);
  void part(bool all);
  void play(const Round& round);

  // Messages, puts and gets.
  void begin(const Step& step);
  bool begin(const Step& step, Role role);
  base::Result<Request*> start(const Step& step, Role role, Piece& piece);
  base::Result<Request*> receive(const Step& step, Piece& piece);
  base::Result<Request*> begin_again(const Step& step, Piece& piece, Request* begun);
  void probe(const Step& step);
  void take_back(const Step& step);
  void end_any();
  void give_up_all(const std::string& why);
  void end(Begun& one, const base::Result<protocol::Status>& ended);
  void check_put(const Step& step);
  void check_order();
  void check_memory();

  // That small messages have room again, once all were received.
  void check_room();
  bool to_partners(const std::vector<int>& partners);
  [[nodiscard]] std::vector<int> partners() const;

  // Exchanges.
  void exchange(const Step& step);
  void end(Exchanging& one);
  void end(Exchanging& one, const base::Result<void>& ended);
  void check_flawed(const Exchanging& one, const base::Result<void>& ended);

  Stage& stage_;
  Unlucky& nic_;
  protocol::Communicator& ranks_;
  Judge judge_;
  support::Random random_;
  std::vector<std::byte> memory_;
  std::vector<Begun> begun_;
  std::vector<Exchanging> exchanging_;
  std::vector<std::pair<int, int>> open_;  // source and tag of what came, by the order of the receives
  std::map<Request*, std::size_t> opened_;
};

}  // namespace lacuna::simulate
