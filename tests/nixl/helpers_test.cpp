// Threads of an agent: what their work throws is a line of the log, and all are waited for.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>

#include "lacuna/nixl/helpers.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nixl::contained;
using nixl::Helpers;

TEST(NixlHelpers, WhatIsThrownIsALineOfTheLog) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(contained("nothing", [] {}));
  EXPECT_FALSE(contained("memory", [] { throw std::bad_alloc(); }));
  EXPECT_FALSE(contained("a number", [] { throw 7; }));
  EXPECT_FALSE(contained("words", [] { throw std::runtime_error("these"); }));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("nothing"), std::string::npos) << said;
  for (const char* part : {"NIXL: memory: std::bad_alloc", "NIXL: a number: ", "NIXL: words: these"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(NixlHelpers, WorkThatThrowsIsWaitedForAsOther) {
  constexpr int kWorks = 30;
  std::atomic<int> begun = 0;
  const auto held = std::make_shared<int>(0);
  Helpers helpers;
  for (int i = 0; i < kWorks; ++i) {
    helpers.run([&begun, held, i] {
      ++begun;
      if (i % 3 == 0) throw std::bad_alloc();
      if (i % 3 == 1) throw i;
    });
  }
  helpers.wait();
  EXPECT_EQ(begun, kWorks);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
