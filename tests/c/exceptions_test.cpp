// What the standard library throws within a call of the C API: the status and the text say what it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "lacuna/c/handles.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

void expect(const auto& thrown, lacuna_status status, const std::string& text) {
  EXPECT_EQ(c::guarded({}, [&]() -> lacuna_status { throw thrown; }), status);
  EXPECT_NE(std::string(lacuna_error_message()).find(text), std::string::npos) << lacuna_error_message();
}
std::system_error of_system(std::errc code) { return {std::make_error_code(code), "what was tried"}; }

TEST(CExceptions, HaveTheirStatus) {
  expect(std::bad_alloc(), LACUNA_ERR_OUT_OF_MEMORY, "no memory for this call");
  expect(std::length_error("vector"), LACUNA_ERR_OUT_OF_MEMORY, "no memory is as large");
  expect(of_system(std::errc::not_enough_memory), LACUNA_ERR_OUT_OF_MEMORY, "what was tried");
  expect(of_system(std::errc::resource_unavailable_try_again), LACUNA_ERR_LIMIT, "what was tried");
  expect(of_system(std::errc::permission_denied), LACUNA_ERR_PERMISSION, "what was tried");
  expect(of_system(std::errc::no_such_file_or_directory), LACUNA_ERR_OTHER, "what was tried");
  expect(std::filesystem::filesystem_error("a file", std::make_error_code(std::errc::operation_not_permitted)), LACUNA_ERR_PERMISSION,
         "a file");
  expect(std::out_of_range("an index"), LACUNA_ERR_OTHER, "an index");
  expect(7, LACUNA_ERR_OTHER, "fault");
}

// A thread that is cancelled unwinds its stack by an exception, which is not ours to end.
TEST(CExceptions, LetAThreadBeCancelled) {
  pthread_t thread{};
  const auto waits = [](void*) -> void* {
    (void)c::guarded({}, [] {
      pause();
      return LACUNA_OK;
    });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, +waits, nullptr), 0);
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST(CExceptions, AreNotSeenWhereThereAreNone) {
  EXPECT_EQ(c::guarded({}, [] { return LACUNA_OK; }), LACUNA_OK);
  EXPECT_EQ(c::guarded({}, [] { return LACUNA_ERR_TIMEOUT; }), LACUNA_ERR_TIMEOUT);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
