// The C API's exchanges.
#include <algorithm>
#include <span>
#include <vector>

#include "lacuna/c/connection.hpp"
#include "lacuna/collective/collective.hpp"

namespace collective = lacuna::collective;
using lacuna::base::Result;
using lacuna::c::check;
using lacuna::c::either;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::value_or;
using lacuna::layout::Layout;

struct lacuna_exchange {
  std::unique_ptr<collective::Exchange> value;
};

namespace {

lacuna_status tell(const Result<void>& ended) { return ended ? LACUNA_OK : failed(ended.error()); }

// A schedule that is none goes on: the other ranks have to be told.
collective::Options options_of(const lacuna_exchange_options* given) {
  collective::Options options;
  if (given == nullptr) return options;
  if (given->schedule != nullptr)
    options.schedule = collective::schedule_from_name(given->schedule).value_or(collective::Schedule::unknown);
  if (given->window != 0) options.window = given->window;
  if (given->timeout_s > 0) options.timeout_ns = static_cast<std::int64_t>(std::min(given->timeout_s, 1e9) * 1e9);
  return options;
}

Layout layout_of(const lacuna_layout* layout) { return layout != nullptr ? layout->value : Layout(); }

template <class Make>
lacuna_status hand_out(const lacuna::c::Missing& missing, const lacuna_exchange_options* given, lacuna_exchange** exchange,
                       const Make& make) {
  return guarded(missing, [&] {
    *exchange = new lacuna_exchange{make(options_of(given))};
    return LACUNA_OK;
  });
}

lacuna_status run_once(lacuna_status made, lacuna_exchange* exchange) {
  if (made != LACUNA_OK) return made;
  lacuna_status ended = lacuna_exchange_start(exchange);
  if (ended == LACUNA_OK) ended = lacuna_exchange_wait(exchange);
  lacuna_exchange_free(exchange);
  return ended;
}

}  // namespace

lacuna_status lacuna_alltoallw_init(lacuna_comm* comm, const void* const* send_bases, const lacuna_layout* const* send_layouts,
                                    void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                    const lacuna_exchange_options* options, lacuna_exchange** exchange) {
  return hand_out(LACUNA_GIVEN(comm, send_bases, send_layouts, receive_bases, receive_layouts, exchange), options, exchange,
                  [&](const collective::Options& wanted) {
                    const auto size = static_cast<std::size_t>(comm->ranks->size());
                    std::vector<collective::Source> sends(size);
                    std::vector<collective::Target> receives(size);
                    for (std::size_t i = 0; i < size; ++i) {
                      sends[i] = {send_bases[i], layout_of(send_layouts[i])};
                      receives[i] = {receive_bases[i], layout_of(receive_layouts[i])};
                    }
                    return collective::alltoallw_init(*comm->ranks, sends, receives, wanted);
                  });
}

lacuna_status lacuna_neighbor_exchange_init(lacuna_comm* comm, int send_count, const int* destinations, const void* const* send_bases,
                                            const lacuna_layout* const* send_layouts, int receive_count, const int* sources,
                                            void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                            const lacuna_exchange_options* options, lacuna_exchange** exchange) {
  return hand_out(either(LACUNA_GIVEN(comm, exchange), either(LACUNA_LISTS(send_count, destinations, send_bases, send_layouts),
                                                              LACUNA_LISTS(receive_count, sources, receive_bases, receive_layouts))),
                  options, exchange, [&](const collective::Options& wanted) {
                    std::vector<collective::Send> sends;
                    std::vector<collective::Receive> receives;
                    sends.reserve(static_cast<std::size_t>(std::max(send_count, 0)));
                    receives.reserve(static_cast<std::size_t>(std::max(receive_count, 0)));
                    for (int i = 0; i < send_count; ++i) sends.push_back({destinations[i], {send_bases[i], layout_of(send_layouts[i])}});
                    for (int i = 0; i < receive_count; ++i)
                      receives.push_back({sources[i], {receive_bases[i], layout_of(receive_layouts[i])}});
                    return collective::neighbor_exchange_init(*comm->ranks, sends, receives, wanted);
                  });
}

lacuna_status lacuna_transpose_init(lacuna_comm* comm, const lacuna_matrix* matrix, const void* before, void* after,
                                    const lacuna_exchange_options* options, lacuna_exchange** exchange) {
  return hand_out(LACUNA_GIVEN(comm, matrix, exchange), options, exchange, [&](const collective::Options& wanted) {
    const auto size = static_cast<std::size_t>(comm->ranks->size());
    const auto blocks = [&](const std::int64_t* given) { return std::span(given, given != nullptr ? size : 0); };
    return collective::transpose_init(*comm->ranks,
                                      {.rows = matrix->rows,
                                       .columns = matrix->columns,
                                       .element_bytes = matrix->element_bytes,
                                       .row_blocks = blocks(matrix->row_blocks),
                                       .column_blocks = blocks(matrix->column_blocks),
                                       .leading_before = matrix->leading_before,
                                       .leading_after = matrix->leading_after},
                                      before, after, wanted);
  });
}

lacuna_status lacuna_alltoallw(lacuna_comm* comm, const void* const* send_bases, const lacuna_layout* const* send_layouts,
                               void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                               const lacuna_exchange_options* options) {
  if (const lacuna_status given = check(LACUNA_GIVEN(comm, send_bases, send_layouts, receive_bases, receive_layouts)); given != LACUNA_OK)
    return given;
  lacuna_exchange* exchange = nullptr;
  const lacuna_status made = lacuna_alltoallw_init(comm, send_bases, send_layouts, receive_bases, receive_layouts, options, &exchange);
  return run_once(made, exchange);
}

lacuna_status lacuna_neighbor_exchange(lacuna_comm* comm, int send_count, const int* destinations, const void* const* send_bases,
                                       const lacuna_layout* const* send_layouts, int receive_count, const int* sources,
                                       void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                       const lacuna_exchange_options* options) {
  if (const lacuna_status given =
          check(either(LACUNA_GIVEN(comm), either(LACUNA_LISTS(send_count, destinations, send_bases, send_layouts),
                                                  LACUNA_LISTS(receive_count, sources, receive_bases, receive_layouts))));
      given != LACUNA_OK)
    return given;
  lacuna_exchange* exchange = nullptr;
  const lacuna_status made = lacuna_neighbor_exchange_init(comm, send_count, destinations, send_bases, send_layouts, receive_count, sources,
                                                           receive_bases, receive_layouts, options, &exchange);
  return run_once(made, exchange);
}

lacuna_status lacuna_transpose(lacuna_comm* comm, const lacuna_matrix* matrix, const void* before, void* after,
                               const lacuna_exchange_options* options) {
  if (const lacuna_status given = check(LACUNA_GIVEN(comm, matrix)); given != LACUNA_OK) return given;
  lacuna_exchange* exchange = nullptr;
  const lacuna_status made = lacuna_transpose_init(comm, matrix, before, after, options, &exchange);
  return run_once(made, exchange);
}

lacuna_status lacuna_exchange_start(lacuna_exchange* exchange) {
  return guarded(LACUNA_GIVEN(exchange), [&] { return tell(exchange->value->start()); });
}

lacuna_status lacuna_exchange_test(lacuna_exchange* exchange, int* done) {
  return guarded(LACUNA_GIVEN(exchange, done), [&] {
    const auto tested = exchange->value->test();
    if (!tested) return failed(tested.error());
    *done = *tested ? 1 : 0;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_exchange_wait(lacuna_exchange* exchange) {
  return guarded(LACUNA_GIVEN(exchange), [&] { return tell(exchange->value->wait()); });
}

size_t lacuna_exchange_explain(const lacuna_exchange* exchange, char* text, size_t size) {
  return value_or(LACUNA_GIVEN(exchange), std::size_t{0}, [&] { return lacuna::c::write_text(exchange->value->explain(), text, size); });
}

void lacuna_exchange_free(lacuna_exchange* exchange) { delete exchange; }
