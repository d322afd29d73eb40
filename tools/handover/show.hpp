// Arguments, and what is printed: a table for people, JSON for machines.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/handover/handover.hpp"

namespace lacuna::handover {

/// A number that a user may set, or a word where `words` is not empty.
struct Setting {
  std::string name;   ///< without the dashes
  std::string value;  ///< the usual one
  std::string help;
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::vector<std::string> words = {};
};

/// --NAME VALUE, or --NAME=VALUE, for each setting; --method, --path, --repeats, --json and --help for all programs.
class Arguments {
 public:
  explicit Arguments(std::vector<Setting> settings);
  /// Errors: invalid_argument, which names the argument, and what it may be.
  Result<void> parse(std::span<char* const> arguments);
  [[nodiscard]] std::int64_t number(const std::string& name) const { return std::stoll(values_.at(name)); }
  [[nodiscard]] const std::string& word(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] Wanted wanted() const;
  [[nodiscard]] bool json() const { return json_; }
  [[nodiscard]] bool help() const { return help_; }
  [[nodiscard]] std::string usage(const std::string& what) const;

 private:
  Result<void> set(const std::string& name, const std::string& value);
  std::vector<Setting> settings_;
  std::map<std::string, std::string> values_;
  bool json_ = false;
  bool help_ = false;
};

/// `title`: what was moved, in a line.
void print_table(const std::string& title, const Outcome& outcome);
void print_json(const std::string& example, const Arguments& arguments, const Outcome& outcome);

/// A program: parses, runs `streams` in `ranks` processes on the NIC `local`, prints. The exit code: 0; 1 if something
/// arrived wrongly or could not be moved at all; 2 if an argument is wrong.
struct Program {
  std::string name;
  std::string what;  ///< for --help
  std::vector<Setting> settings;
  int ranks = 2;
  Result<std::vector<Stream>> (*streams)(const Arguments&);
  std::string (*title)(const Arguments&);
};
int run_program(const Program& program, int argc, char** argv);

}  // namespace lacuna::handover
