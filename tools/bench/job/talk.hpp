// Lines of JSON over a Unix socket, one end of which is `lacuna bench`. A process sleeps while it hears nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "lacuna/base/base.hpp"

namespace lacuna::bench {

class Talk {
 public:
  /// Connects. This and say() throw Broken.
  explicit Talk(const std::string& path);

  void say(const nlohmann::json& line) const;
  /// False at the end.
  bool hear(std::string& line);

 private:
  base::Fd socket_;
  std::string heard_;
};

}  // namespace lacuna::bench
