// What follows a program's name: pairs of --name and value, of the names that the program knows.
#pragma once

#include <charconv>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace examples {

class Arguments {
 public:
  /// Throws std::invalid_argument where a name is not one of `names`, or a value is missing.
  Arguments(int argc, char** argv, std::initializer_list<std::string> names) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      bool known = false;
      for (const std::string& one : names) known = known || name == "--" + one;
      if (!known || i + 1 == argc) throw std::invalid_argument(name + (known ? " needs a value" : " is not known"));
      values_.emplace_back(name.substr(2), argv[i + 1]);
    }
  }

  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const {
    for (const auto& [given, value] : values_)
      if (given == name) return value;
    return otherwise;
  }
  /// Separated by commas.
  [[nodiscard]] std::vector<std::string> words(const std::string& name, const std::string& otherwise) const {
    std::vector<std::string> all(1);
    for (const char c : text(name, otherwise)) {
      if (c == ',') {
        all.emplace_back();
      } else {
        all.back() += c;
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<int> numbers(const std::string& name, const std::string& otherwise) const {
    std::vector<int> all;
    for (const std::string& word : words(name, otherwise)) all.push_back(parsed(name, word));
    return all;
  }
  [[nodiscard]] int number(const std::string& name, int otherwise) const { return parsed(name, text(name, std::to_string(otherwise))); }

 private:
  static int parsed(const std::string& name, const std::string& word) {
    int value = 0;
    const char* end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || at != end || value < 1) throw std::invalid_argument("--" + name + ": " + word + " is no number from 1 on");
    return value;
  }
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace examples
