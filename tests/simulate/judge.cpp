#include "tests/simulate/judge.hpp"

#include "lacuna/method/method.hpp"

namespace lacuna::simulate {
namespace {

using base::Code;

// What a rank says whose NIC refused something, and what its peers hear of it.
bool is_of_refusals(Code code) {
  return code == Code::timeout || code == Code::limit || code == Code::out_of_memory || code == Code::transfer || code == Code::peer_lost;
}

std::string objection(const char* why, const base::Error& error) { return std::string(why) + ": " + error.text(); }

}  // namespace

// A method that is forced may need more keys than there are; then one of its messages fails, and what its two ranks
// have under way may with it.
bool Judge::lacks_keys() const {
  const Story& story = stage_.story;
  return story.keys >= 0 && !story.method.empty() && (*method::find(story.method))->indirect_keys;
}

bool Judge::may_be_anything(const Step& step) const {
  const Luck& luck = stage_.story.luck;
  if (step.kind == Step::Kind::exchange) return stage_.fate.deceived;
  return stage_.fate.deceived && luck.deceives(step.from, step.to);
}

bool Judge::any_may_fail() const {
  return stage_.fate.deceived || lacks_keys() || std::ranges::any_of(stage_.fate.troubled, [](bool troubled) { return troubled; });
}

bool Judge::may_fail(const Step& step) const {
  if (step.kind == Step::Kind::exchange) return any_may_fail();
  const int dies = stage_.story.luck.dies;
  if (dies >= 0 && (step.of(dies) || step.from == dies)) return true;
  // A rank that gives an exchange up is lost to those whose messages were half way.
  const auto troubled = [this](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return stage_.fate.troubled[at] || (stage_.fate.exchanging[at] > 0 && any_may_fail());
  };
  return lacks_keys() || troubled(step.from) || troubled(step.to) || may_be_anything(step);
}

std::string Judge::objects(const base::Error& error) const {
  if (!any_may_fail()) return objection("nothing was broken", error);
  if (stage_.fate.deceived || is_of_refusals(error.code)) return {};
  return objection("that is no error of what was refused", error);
}

std::string Judge::objects(const Step& step, const base::Error& error) const {
  if (!may_fail(step)) return objection("nothing was broken", error);
  const int dies = stage_.story.luck.dies;
  if (may_be_anything(step) || (dies >= 0 && (step.of(dies) || step.from == dies)) || is_of_refusals(error.code)) return {};
  return objection("that is no error of what was refused", error);
}

}  // namespace lacuna::simulate
