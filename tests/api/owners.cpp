// with WRONG: deleted
// A connection, a request and an exchange have one owner each; a layout may be copied.
#include <lacuna.hpp>
#include <type_traits>
#include <utility>

static_assert(std::is_copy_constructible_v<lacuna::Layout>);
static_assert(std::is_nothrow_move_constructible_v<lacuna::Communicator> && std::is_nothrow_move_constructible_v<lacuna::Request> &&
              std::is_nothrow_move_constructible_v<lacuna::Exchange>);
static_assert(!std::is_copy_constructible_v<lacuna::Request> && !std::is_copy_constructible_v<lacuna::Exchange> &&
              !std::is_copy_constructible_v<lacuna::Guide> && !std::is_copy_constructible_v<lacuna::Device>);

lacuna::Communicator handed_on(lacuna::Communicator ranks) {
#ifdef WRONG
  lacuna::Communicator other = ranks;
#else
  lacuna::Communicator other = std::move(ranks);
#endif
  return other;
}
