// What a program prints: JSON, one object a line.
#pragma once

#include <concepts>
#include <cstdio>
#include <span>
#include <string>

namespace examples {

class Report {
 public:
  Report& add(const std::string& name, const std::string& value) { return raw(name, quoted(value)); }
  Report& add(const std::string& name, const char* value) { return raw(name, quoted(value)); }
  Report& add(const std::string& name, std::integral auto value) { return raw(name, std::to_string(value)); }
  Report& add(const std::string& name, double value) { return raw(name, number(value)); }
  Report& add(const std::string& name, const Report& value) { return raw(name, value.text()); }
  Report& add(const std::string& name, std::span<const double> values) {
    std::string all;
    for (const double value : values) all += (all.empty() ? "" : ", ") + number(value);
    return raw(name, "[" + all + "]");
  }
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }
  void print() const {
    std::printf("%s\n", text().c_str());
    std::fflush(stdout);
  }

 private:
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= ' ') out += c;
    }
    return out + "\"";
  }
  Report& raw(const std::string& name, const std::string& value) {
    members_ += (members_.empty() ? "" : ", ") + quoted(name) + ": " + value;
    return *this;
  }
  std::string members_;
};

}  // namespace examples
