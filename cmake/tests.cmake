# One GoogleTest executable for each folder of tests/ that holds *_test.cpp: lacuna_<folder>_tests, label <folder>.
# CTest starts it anew for each test; under the sanitizers, where a start takes 0.14 s and there are 1500 tests, for each of a
# few shares of them.

find_package(GTest REQUIRED)
include(GoogleTest)

# ThreadSanitizer does not see across processes. Under it, tests whose full name matches one of these patterns are left
# out, and these folders are not even built.
# Of the methods' settings two tell it all that it can see: the usual limits and the tiny ones. What one thread does alone tells
# it nothing, and in the model's virtual time one does all.
set(single_threaded "EverySet/*;Copy.*;Choose.*;DdtBench.*;Explain.*;MedianOf.*;Memo.*;ProfileFile.*;WayBytes.*;Matcher.*;Parts.*;ModelAlltoall.*;*ModelMethods.*;*ModelKinds.*;*InVirtualTime*")
set(LACUNA_TSAN_EXCLUDE_TESTS "*TwoProcesses*;*Method*_OneOfEach;*Method*_OddReads;*Method*_Strides;*Method*_SlowScatter;*ForcedKeys*;${single_threaded}" CACHE STRING "Test name patterns left out under tsan")
set(LACUNA_TSAN_EXCLUDE_FOLDERS "layout;examples" CACHE STRING "Test folders left out under tsan")

# Two of the four instruction sets that tests are repeated with are nearly the same to AddressSanitizer.
set(LACUNA_ASAN_EXCLUDE_TESTS "EverySet/*/AVX3" CACHE STRING "Test name patterns left out under asan")

# Folders whose tests start processes and wait for them: run one at a time, so that two of them never share a core. Under the
# sanitizers those with a pair of them in their name do, and the others as other tests.
set(LACUNA_SERIAL_FOLDERS nic method guide c rget CACHE STRING "Test folders whose tests run alone")
set(pairs "*TwoProcesses*:*TwoThreads*")

# What two processes have shown is shown again by two threads only where that tells something: to ThreadSanitizer.
set(LACUNA_ONLY_TSAN_TESTS "*EveryMethod*TwoThreads*" CACHE STRING "Test name patterns that only tsan runs")

set(test_timeout 60)
set(excluded ${LACUNA_ONLY_TSAN_TESTS})
if(LACUNA_SANITIZE STREQUAL "address")
  list(APPEND excluded ${LACUNA_ASAN_EXCLUDE_TESTS})
elseif(LACUNA_SANITIZE STREQUAL "thread")
  set(excluded ${LACUNA_TSAN_EXCLUDE_TESTS})
endif()
list(JOIN excluded ":" excluded)
set(test_filter "-${excluded}")

# Tests are compiled some files at a time. Each of them names its own namespace LACUNA_TEST_FILE, which has no name where files are compiled alone.
function(compile_together target files)
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(LACUNA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 8 UNITY_BUILD_UNIQUE_ID LACUNA_TEST_FILE)
  else()
    target_compile_definitions(${target} PRIVATE "LACUNA_TEST_FILE=")
  endif()
endfunction()

# Helpers, shared by all; a main() among them takes the place of GoogleTest's.
file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
add_library(lacuna_test_support INTERFACE)
if(support_sources)
  add_library(lacuna_test_support_objects STATIC ${support_sources})
  find_library(LACUNA_URING uring REQUIRED)  # memory that is really pinned (tests/support/mlx5/pins.hpp)
  target_link_libraries(lacuna_test_support_objects PUBLIC lacuna GTest::gtest PRIVATE fmt::fmt ${LACUNA_URING} lacuna_options)
  target_compile_definitions(lacuna_test_support_objects PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(lacuna_test_support INTERFACE lacuna_test_support_objects)
endif()
target_link_libraries(lacuna_test_support INTERFACE lacuna GTest::gtest GTest::gtest_main fmt::fmt nlohmann_json::nlohmann_json)

# What is tested is optimised as it is shipped, and looked through for undefined behaviour. The tests themselves would take
# three times as long to compile that way.
add_library(lacuna_test_options INTERFACE)
target_compile_options(lacuna_test_options INTERFACE -O0 $<$<STREQUAL:${LACUNA_SANITIZE},address>:-fno-sanitize=undefined>)

# What most tests include, compiled once.
file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "")
add_library(lacuna_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cpp)
target_include_directories(lacuna_test_headers PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(lacuna_test_headers PRIVATE lacuna_test_support lacuna_options lacuna_test_options)
set_target_properties(lacuna_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)  # as in the tests: the compiler insists
target_precompile_headers(lacuna_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <cmath> <cstdint> <cstdlib> <cstring> <fstream> <functional>
  <map> <memory> <numeric> <set> <span> <string> <thread> <tuple> <utility> <vector> <fmt/format.h>)

# The folders are found again at each build: the glob over the files sees a new one.
file(GLOB_RECURSE test_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
set(test_folders "")
foreach(file IN LISTS test_files)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/tests ${file})
  string(REGEX REPLACE "/.*" "" folder ${relative})
  list(APPEND test_folders ${folder})
endforeach()
list(REMOVE_DUPLICATES test_folders)

if(LACUNA_SANITIZE STREQUAL "thread")
  list(REMOVE_ITEM test_folders ${LACUNA_TSAN_EXCLUDE_FOLDERS})
endif()
if(NOT LACUNA_EXAMPLES)
  list(REMOVE_ITEM test_folders examples)
endif()

foreach(folder IN LISTS test_folders)
  set(target lacuna_${folder}_tests)
  file(GLOB_RECURSE folder_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)  # the tests, and helpers of their own
  if(folder STREQUAL "examples")  # what of them needs no MPI; the spoiled ones are compiled by tests/python/test_examples.py
    list(FILTER folder_files EXCLUDE REGEX "/spoiled/")
    list(APPEND folder_files examples/fft2d/check.cpp examples/fft2d/transpose.cpp examples/stencil2d/jacobi.cpp examples/faces3d/check.cpp)
  endif()
  if(folder STREQUAL "rget")  # of the interposer, what needs no MPI
    list(APPEND folder_files lacuna/mpi/rget.cpp)
  endif()
  add_executable(${target} ${folder_files})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE lacuna_test_support lacuna_options lacuna_test_options)
  target_precompile_headers(${target} REUSE_FROM lacuna_test_headers)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  compile_together(${target} "${folder_files}")
  if(folder STREQUAL "copy")
    target_link_libraries(${target} PRIVATE hwy::hwy)  # to restrict the instruction sets
  endif()
  if(folder STREQUAL "examples")
    target_link_libraries(${target} PRIVATE lacuna_example_support)
  endif()
  target_compile_definitions(${target} PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET lacuna-worker)
    target_compile_definitions(${target} PRIVATE LACUNA_WORKER="$<TARGET_FILE:lacuna-worker>")
    add_dependencies(${target} lacuna-worker)
  endif()

  set(serial OFF)
  if(folder IN_LIST LACUNA_SERIAL_FOLDERS)
    set(serial ON)
  endif()
  if(NOT LACUNA_SANITIZE STREQUAL "none")
    set(shares 4)
    set(filter "${test_filter}")
    if(serial)
      set(shares 2)
      set(filter "${test_filter}:${pairs}")
      set(name ${folder}.pairs)
      add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 "--gtest_filter=${pairs}${test_filter}" --gtest_output=xml:${PROJECT_BINARY_DIR}/shares/${name}.xml)
      set_tests_properties(${name} PROPERTIES LABELS ${folder} TIMEOUT 900 RUN_SERIAL ON)
    endif()
    math(EXPR last "${shares} - 1")
    foreach(share RANGE ${last})
      set(name ${folder}.share${share})
      add_test(NAME ${name} COMMAND ${target} --gtest_brief=1 "--gtest_filter=${filter}" --gtest_output=xml:${PROJECT_BINARY_DIR}/shares/${name}.xml)
      set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shares};GTEST_SHARD_INDEX=${share}" LABELS ${folder} TIMEOUT 900)
    endforeach()
    continue()
  endif()
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    NO_PRETTY_VALUES  # parameterised tests have names of their own; a dump of the bytes is none
    TEST_PREFIX "${folder}."
    TEST_FILTER "${test_filter}"
    PROPERTIES
      TIMEOUT ${test_timeout}
      LABELS ${folder}
      RUN_SERIAL ${serial}
      SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endforeach()

# The same tests on NIC verbs, over a fake of an mlx5 device, which lives in one process: two threads.
foreach(folder nic method rget)
  add_test(NAME ${folder}.on_fake_mlx5
    COMMAND lacuna_${folder}_tests --gtest_brief=1 --gtest_filter=*wire*TwoThreads*:*TwoThreads*wire*
            --gtest_output=xml:${PROJECT_BINARY_DIR}/shares/${folder}.on_fake_mlx5.xml)
  set_tests_properties(${folder}.on_fake_mlx5 PROPERTIES ENVIRONMENT LACUNA_TEST_NIC=fake LABELS ${folder} TIMEOUT 900 RUN_SERIAL ON)
endforeach()

# The hand-overs themselves, small, in as many processes as they have; and that a byte that is flipped on its way is found.
if(LACUNA_EXAMPLES AND NOT LACUNA_SANITIZE STREQUAL "thread")
  foreach(example kv_handover reshard)
    add_test(NAME examples.${example} COMMAND ${example} --tokens 200 --layers 2 --repeats 1 --json)
    add_test(NAME examples.${example}_corrupted COMMAND ${example} --tokens 200 --layers 2 --repeats 1 --method pack)
    set_tests_properties(examples.${example} PROPERTIES PASS_REGULAR_EXPRESSION "\"verified\": true,[^a-z]*\"rows\"")
    set_tests_properties(examples.${example}_corrupted PROPERTIES
      ENVIRONMENT LACUNA_TEST_FAULT=corrupt PASS_REGULAR_EXPRESSION "and should be 0x[0-9a-f]*: byte 0 of K of layer 0, token 0")
    set_tests_properties(examples.${example} examples.${example}_corrupted PROPERTIES LABELS examples TIMEOUT 120 RUN_SERIAL ON)
  endforeach()
  add_test(NAME examples.kv_handover_latent COMMAND kv_handover --case latent --tokens 1000 --head-bytes 576 --layers 1 --repeats 1 --json)
  set_tests_properties(examples.kv_handover_latent PROPERTIES
    PASS_REGULAR_EXPRESSION "\"verified\": true,[^a-z]*\"rows\"" LABELS examples TIMEOUT 120 RUN_SERIAL ON)
endif()

# The include ladder, as a test. Once is enough, so not under the sanitizers.
find_program(LACUNA_PYTHON3 python3)
if(LACUNA_PYTHON3 AND LACUNA_SANITIZE STREQUAL "none")
  add_test(NAME ladder COMMAND ${LACUNA_PYTHON3} ${PROJECT_SOURCE_DIR}/scripts/ladder.py)
  set_tests_properties(ladder PROPERTIES LABELS ladder TIMEOUT 30)
endif()
