// The C API's guide.
#include "lacuna/guide/guide.hpp"

#include <memory>
#include <string>

#include "lacuna/c/handles.hpp"

using lacuna::base::Code;
using lacuna::base::Result;
using lacuna::c::check;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::value_or;
using lacuna::c::write_text;

struct lacuna_guide {
  lacuna::guide::Guide guide;
  const lacuna::guide::PeerClass* peer;
};

namespace {

// The library's names are literals, so they end with a NUL.
const char* c_name(std::string_view name) { return name.data(); }  // NOLINT(bugprone-suspicious-stringview-data-usage)

Result<lacuna::guide::Placement> placement_of(const lacuna_placement& given) {
  if (given.objective < LACUNA_LATENCY || given.objective > LACUNA_CPU)
    return lacuna::base::fail(Code::invalid_argument, "there is no objective " + std::to_string(given.objective));
  if (!(given.uses >= 0)) return lacuna::base::fail(Code::invalid_argument, "a negative number of uses");
  return lacuna::guide::Placement{.src_shared = given.src_private == 0,
                                  .dst_shared = given.dst_private == 0,
                                  .cold = given.cold != 0,
                                  .told = given.untold == 0,
                                  .uses = static_cast<float>(given.uses),
                                  .objective = static_cast<lacuna::guide::Objective>(given.objective)};
}

}  // namespace

size_t lacuna_layout_explain(const lacuna_layout* layout, char* text, size_t size) {
  return value_or(LACUNA_GIVEN(layout), std::size_t{0}, [&] { return write_text(lacuna::guide::describe(layout->value), text, size); });
}

lacuna_status lacuna_guide_open(const char* nic, double message_us, lacuna_guide** guide) {
  return guarded(LACUNA_GIVEN(nic, guide), [&] {
    namespace library = lacuna::guide;
    auto force = library::Force::from_environment();
    if (!force) return failed(force.error());
    auto limits = library::limits_of(nic);
    if (!limits) return failed(limits.error());
    auto made = std::make_unique<lacuna_guide>(library::Guide(*force), nullptr);
    made->peer = &made->guide.add(std::move(*limits), library::find_profile(nic), message_us);
    *guide = made.release();
    return LACUNA_OK;
  });
}

void lacuna_guide_free(lacuna_guide* guide) { delete guide; }

lacuna_status lacuna_guide_choose_placed(lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst,
                                         const lacuna_placement* placement, lacuna_choice* choice) {
  return guarded(LACUNA_GIVEN(guide, src, dst, placement, choice), [&] {
    const auto where = placement_of(*placement);
    if (!where) return failed(where.error());
    const auto made = guide->guide.choose(src->value, dst->value, *guide->peer, *where);
    if (!made) return failed(made.error());
    *choice = {c_name(made->way.method->name),
               c_name(lacuna::nic::path_name(made->way.path)),
               c_name(lacuna::method::notify_name(made->way.notify)),
               made->plan.latency_ns / 1e3,
               {made->plan.cpu_ns[0] / 1e3, made->plan.cpu_ns[1] / 1e3}};
    return LACUNA_OK;
  });
}

lacuna_status lacuna_guide_choose(lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective,
                                  lacuna_choice* choice) {
  if (const lacuna_status given = check(LACUNA_GIVEN(guide, src, dst, choice)); given != LACUNA_OK) return given;
  const lacuna_placement placement{.objective = objective};
  return lacuna_guide_choose_placed(guide, src, dst, &placement, choice);
}

lacuna_status lacuna_guide_explain_placed(const lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst,
                                          const lacuna_placement* placement, char* text, size_t size, size_t* needed) {
  return guarded(LACUNA_GIVEN(guide, src, dst, placement, needed), [&] {
    const auto where = placement_of(*placement);
    if (!where) return failed(where.error());
    const auto why = guide->guide.explain(src->value, dst->value, *guide->peer, *where);
    if (!why) return failed(why.error());
    *needed = write_text(lacuna::guide::describe(*why), text, size);
    return LACUNA_OK;
  });
}

lacuna_status lacuna_guide_explain(const lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective, char* text,
                                   size_t size, size_t* needed) {
  if (const lacuna_status given = check(LACUNA_GIVEN(guide, src, dst, needed)); given != LACUNA_OK) return given;
  const lacuna_placement placement{.objective = objective};
  return lacuna_guide_explain_placed(guide, src, dst, &placement, text, size, needed);
}
