# One GoogleTest executable for each folder of tests/ that holds *_test.cpp: lacuna_<folder>_tests. CTest runs each in a
# few shares, label <folder>. Which tests a run takes, LACUNA_TIER and LACUNA_SHARD say (tests/support/main.cpp); the
# labels stand beside the tests (tests/support/tier.hpp).

find_package(GTest REQUIRED)

# In how many shares a program runs: more for those that take longer. They are started in this order.
set(shares_method 6)
set(shares_protocol 4)
set(shares_guide 2)
set(shares_tools 2)
set(shares_collective 3)
set(shares_copy 2)
set(shares_layout 3)
set(shares_nic 3)
set(longest method protocol tools guide collective copy layout nic)

# Folders that tell ThreadSanitizer nothing: there is one thread.
set(LACUNA_TSAN_EXCLUDE_FOLDERS "layout;examples" CACHE STRING "Test folders that are not built under tsan")

# Seconds that a share may take. A machine that computes something else, and a sanitizer, make it twenty times slower.
set(share_timeout 1800)

# Helpers, shared by all, and main().
file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
list(FILTER support_sources EXCLUDE REGEX "/(random_layout|typemap)\\.cpp$")  # lacuna_test_layouts
add_library(lacuna_test_support STATIC ${support_sources})
find_library(LACUNA_URING uring REQUIRED)  # memory that is really pinned (tests/support/mlx5/pins.hpp)
target_link_libraries(lacuna_test_support
  PUBLIC lacuna_test_layouts lacuna_tools GTest::gtest fmt::fmt
  PRIVATE ${LACUNA_URING} lacuna_options)
target_compile_definitions(lacuna_test_support PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
compile_at_once(lacuna_test_support)
# Its main() is for programs that have none
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/main.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Random layouts and the naive walk over them, which lacuna_simulate has without the rest
add_library(lacuna_test_layouts STATIC ${PROJECT_SOURCE_DIR}/tests/support/random_layout.cpp ${PROJECT_SOURCE_DIR}/tests/support/typemap.cpp)
target_link_libraries(lacuna_test_layouts PUBLIC lacuna_inside PRIVATE lacuna_options)

# What is tested is optimised as it is shipped, and looked through for undefined behaviour. The tests themselves would
# take three times as long to compile that way.
add_library(lacuna_test_options INTERFACE)
target_compile_options(lacuna_test_options INTERFACE -O0 $<$<STREQUAL:${LACUNA_SANITIZE},address>:-fno-sanitize=undefined>)

# What most tests include, compiled once.
file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "")
add_library(lacuna_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cpp)
target_link_libraries(lacuna_test_headers PRIVATE lacuna_test_support lacuna_options lacuna_test_options)
# As in the tests: the compiler insists
set_target_properties(lacuna_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_precompile_headers(lacuna_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <cmath> <cstdint> <cstdlib> <cstring> <fstream> <functional>
  <map> <memory> <numeric> <set> <span> <string> <thread> <tuple> <utility> <vector> <fmt/format.h>)

# Tests are compiled some files at a time. Each of them names its own namespace LACUNA_TEST_FILE, which has no name
# where files are compiled alone.
function(compile_together target files)
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$|/lacuna/|^lacuna/")
  set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(LACUNA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 8 UNITY_BUILD_UNIQUE_ID LACUNA_TEST_FILE)
  else()
    target_compile_definitions(${target} PRIVATE "LACUNA_TEST_FILE=")
  endif()
endfunction()

# add_share(NAME FOLDER COST ENVIRONMENT [ARGUMENT...]): a run of a folder's program, whose report goes where
# scripts/run_tests.py looks for it.
function(add_share name folder cost environment)
  add_test(NAME ${name} COMMAND lacuna_${folder}_tests ${ARGN} --gtest_output=xml:${PROJECT_BINARY_DIR}/shares/${name}.xml)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" LABELS ${folder} TIMEOUT ${share_timeout} COST ${cost})
endfunction()

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
if(NOT hand_overs)
  list(REMOVE_ITEM test_folders handover)
endif()

# Worlds in which things go wrong: lacuna_simulate, and what its tests use.
file(GLOB simulate_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/simulate/*.cpp)
list(FILTER simulate_sources EXCLUDE REGEX "/(main|.*_test)\\.cpp$")
add_library(lacuna_simulation STATIC ${simulate_sources})
target_compile_definitions(lacuna_simulation PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(lacuna_simulation PUBLIC lacuna_test_layouts fmt::fmt PRIVATE lacuna_options)
compile_at_once(lacuna_simulation)
add_executable(lacuna_simulate tests/simulate/main.cpp)
target_link_libraries(lacuna_simulate PRIVATE lacuna_simulation lacuna_options)
# Looked up at each build; what includes it is compiled again where it differs.
set(commit_header ${PROJECT_BINARY_DIR}/simulate/commit.hpp)
add_custom_target(lacuna_commit BYPRODUCTS ${commit_header} VERBATIM
  COMMAND ${CMAKE_COMMAND} -D SOURCES=${PROJECT_SOURCE_DIR} -D HEADER=${commit_header} -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake)
add_dependencies(lacuna_simulate lacuna_commit)
target_include_directories(lacuna_simulate PRIVATE ${PROJECT_BINARY_DIR}/simulate)

# The interposer over the fake host of tests/interposer, which takes the place of host.cpp and machine.cpp. Nothing is
# looked up there.
file(GLOB_RECURSE interposer_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/mpi/*.cpp)
list(FILTER interposer_sources EXCLUDE REGEX "/(host|lookup|machine)\\.cpp$")
add_library(lacuna_interposer OBJECT ${interposer_sources})
target_compile_definitions(lacuna_interposer PUBLIC LACUNA_MPI_ABI_STANDARD LACUNA_MPI_RANKS_ARE_THREADS)
target_link_libraries(lacuna_interposer PRIVATE lacuna_inside fmt::fmt lacuna_options)
compile_at_once(lacuna_interposer)
if(LACUNA_COVERAGE)
  target_compile_options(lacuna_interposer PRIVATE --coverage -fprofile-update=atomic -O1 -fno-inline)
endif()

# What comes from outside, nearly valid: lacuna_fuzz, of which tests/fuzz/table.cpp is the table.
file(GLOB_RECURSE fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
file(GLOB fuzz_helpers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/copy/*.cpp ${PROJECT_SOURCE_DIR}/tests/nixl/ends.cpp
  ${PROJECT_SOURCE_DIR}/tests/protocol/message/hostile_rig.cpp ${PROJECT_SOURCE_DIR}/tests/interposer/*.cpp)
list(FILTER fuzz_helpers EXCLUDE REGEX "_test\\.cpp$")
add_executable(lacuna_fuzz ${fuzz_sources} ${fuzz_helpers})
target_include_directories(lacuna_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(lacuna_fuzz SYSTEM PRIVATE ${LACUNA_HIGHWAY_INCLUDE_DIR})
target_compile_definitions(lacuna_fuzz PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LACUNA_TEST_FILE=
  LACUNA_STUB_CUDA="${PROJECT_BINARY_DIR}/stub/libcuda.so.1")
target_link_libraries(lacuna_fuzz PRIVATE lacuna_test_support lacuna_interposer lacuna_nixl ${CMAKE_DL_LIBS} lacuna_options
  $<$<BOOL:${LACUNA_COVERAGE}>:--coverage>)

foreach(folder IN LISTS test_folders)
  set(target lacuna_${folder}_tests)
  # The tests, and helpers of their own
  file(GLOB_RECURSE folder_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  # What of them needs no MPI; the spoiled ones are compiled by tests/python/mpi/test_examples.py
  if(folder STREQUAL "examples")
    list(FILTER folder_files EXCLUDE REGEX "/spoiled/")
    list(APPEND folder_files examples/fft2d/check.cpp examples/fft2d/transpose.cpp examples/stencil2d/jacobi.cpp examples/faces3d/check.cpp)
  endif()
  list(FILTER folder_files EXCLUDE REGEX "/interposer/stub/")
  if(folder STREQUAL "simulate")
    list(FILTER folder_files INCLUDE REGEX "_test\\.cpp$")
  endif()
  if(folder STREQUAL "device")  # the layouts that the CPU's copies are tested with
    list(APPEND folder_files tests/copy/recipe.cpp tests/copy/shapes.cpp tests/copy/compositions.cpp)
  endif()
  add_executable(${target} ${folder_files})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE lacuna_test_support lacuna_options lacuna_test_options)
  target_precompile_headers(${target} REUSE_FROM lacuna_test_headers)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  compile_together(${target} "${folder_files}")
  if(folder STREQUAL "interposer")
    target_link_libraries(${target} PRIVATE lacuna_interposer ${CMAKE_DL_LIBS} $<$<BOOL:${LACUNA_COVERAGE}>:--coverage>)
    # Loaded by name, as the driver of a GPU is
    add_library(lacuna_stub_cuda MODULE ${PROJECT_SOURCE_DIR}/tests/interposer/stub/cuda.cpp)
    set_target_properties(lacuna_stub_cuda PROPERTIES PREFIX "lib" OUTPUT_NAME cuda SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/stub)
    target_link_libraries(lacuna_stub_cuda PRIVATE lacuna_options)
    add_dependencies(${target} lacuna_stub_cuda)
    target_compile_definitions(${target} PRIVATE LACUNA_STUB_CUDA="${PROJECT_BINARY_DIR}/stub/libcuda.so.1")
  endif()
  if(folder STREQUAL "copy")  # it restricts the instruction sets
    target_include_directories(${target} SYSTEM PRIVATE ${LACUNA_HIGHWAY_INCLUDE_DIR})
  endif()
  if(folder STREQUAL "c")
    target_compile_definitions(${target} PRIVATE LACUNA_VERSION="${PROJECT_VERSION}")
  endif()
  if(folder STREQUAL "simulate")
    target_link_libraries(${target} PRIVATE lacuna_simulation)
  endif()
  if(folder STREQUAL "nixl")
    target_link_libraries(${target} PRIVATE lacuna_nixl)
  endif()
  if(folder STREQUAL "handover")
    target_link_libraries(${target} PRIVATE lacuna_handover)
  endif()
  target_compile_definitions(${target} PRIVATE LACUNA_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LACUNA_WORKER="$<TARGET_FILE:lacuna-worker>")
  add_dependencies(${target} lacuna-worker)

  list(FIND longest ${folder} place)
  if(place EQUAL -1)
    set(place 9)
  endif()
  math(EXPR cost "100 - ${place}")
  if(NOT DEFINED shares_${folder})
    set(shares_${folder} 1)
  endif()
  math(EXPR last "${shares_${folder}} - 1")
  foreach(share RANGE ${last})
    add_share(${folder}.share${share} ${folder} ${cost} "GTEST_TOTAL_SHARDS=${shares_${folder}};GTEST_SHARD_INDEX=${share}")
  endforeach()
endforeach()

# The same tests on NIC verbs, over a fake of an mlx5 device, which lives in one process: two threads.
foreach(folder nic method protocol)
  add_share(${folder}.on_fake_mlx5 ${folder} 98 LACUNA_TEST_NIC=fake "--gtest_filter=*wire*TwoThreads*:*TwoThreads*wire*")
endforeach()

# The same tests on NIC ofi, over libfabric's provider tcp: as it is; as strict as providers may be, where each request
# waits for the one before; with a thread that answers peers; and on the providers whose endpoints have no connection.
# ThreadSanitizer does not see how libfabric, which is not compiled with it, keeps its threads apart.
set(on_wire "--gtest_filter=*wire*TwoProcesses*:*wire*TwoThreads*:*TwoProcesses*wire*:*TwoThreads*wire*")
if(NOT LACUNA_SANITIZE STREQUAL "thread")
  add_share(nic.on_ofi_tcp nic 98 LACUNA_TEST_NIC=ofi:tcp ${on_wire})
  add_share(nic.on_ofi_narrow nic 98 LACUNA_TEST_NIC=narrow ${on_wire})
  add_share(nic.on_ofi_attended nic 98 LACUNA_TEST_NIC=attended ${on_wire})
  add_share(protocol.on_ofi_attended protocol 98 LACUNA_TEST_NIC=attended "--gtest_filter=*RgetOnPath*")
endif()
if(LACUNA_SANITIZE STREQUAL "none")
  add_share(nic.on_ofi_rxm nic 98 "LACUNA_TEST_NIC=ofi:tcp\\;ofi_rxm" "--gtest_filter=*wire*TwoProcesses*:*TwoProcesses*wire*")
  add_share(method.on_ofi_rxm method 98 "LACUNA_TEST_NIC=ofi:tcp\\;ofi_rxm" "--gtest_filter=*EveryMethod*TwoProcesses*wire_Default")
  foreach(provider shm sockets)
    add_share(nic.on_ofi_${provider} nic 98 LACUNA_TEST_NIC=ofi:${provider} "--gtest_filter=*wire*TwoProcesses*:*TwoProcesses*wire*")
    # Chains of many writes take half a minute on these: methods with few requests are in each run.
    add_share(method.on_ofi_${provider} method 98 LACUNA_TEST_NIC=ofi:${provider} "--gtest_filter=*EveryMethod*TwoProcesses/pack*wire_Default")
  endforeach()
  add_share(method.on_ofi_tcp method 98 LACUNA_TEST_NIC=ofi:tcp "--gtest_filter=*wire*TwoProcesses*:*TwoProcesses*wire*")
  add_share(protocol.on_ofi_tcp protocol 98 LACUNA_TEST_NIC=ofi:tcp "--gtest_filter=Storm*:DeadPeer*:Truncation*:Access*")
  add_share(method.on_ofi_narrow method 98 LACUNA_TEST_NIC=narrow "--gtest_filter=*EveryMethod*TwoProcesses*wire_*")
endif()

# Simulated worlds in which things go wrong, as many as take a minute; they reach each rare branch.
set(simulated --seeds 1000 --rarely)
if(NOT LACUNA_SANITIZE STREQUAL "none")
  set(simulated --seeds 60)
endif()
if(NOT LACUNA_SANITIZE STREQUAL "thread")  # one thread, whose stacks it does not know
  add_test(NAME simulate.seeds COMMAND lacuna_simulate ${simulated} --jobs 2)
  set_tests_properties(simulate.seeds PROPERTIES LABELS programs TIMEOUT ${share_timeout})
endif()

# A smoke run of each fuzzer: five seconds at most each. Sanitizers get a part of that.
set(fuzz_part "")
if(NOT LACUNA_SANITIZE STREQUAL "none")
  set(fuzz_part --times 0.05)
endif()
if(LACUNA_SANITIZE STREQUAL "thread")  # what has threads, without libfabric
  list(APPEND fuzz_part --only protocol_heads --only ring_channel --only mpi_descriptor)
endif()
add_test(NAME fuzz.smoke COMMAND lacuna_fuzz ${fuzz_part})
math(EXPR fuzz_timeout "3 * ${share_timeout}")  # of LACUNA_FUZZ_TIMES=20, on a machine that computes something else
set_tests_properties(fuzz.smoke PROPERTIES LABELS programs TIMEOUT ${fuzz_timeout})

# The hand-overs themselves, small, in as many processes as they have; and that a byte that is flipped on its way is
# found.
if(hand_overs)
  foreach(example kv_handover reshard)
    add_test(NAME handover.${example} COMMAND ${example} --tokens 200 --layers 2 --repeats 1 --json)
    add_test(NAME handover.${example}_on_ofi COMMAND ${example} --tokens 200 --layers 2 --repeats 1 --json)
    set_tests_properties(handover.${example}_on_ofi PROPERTIES ENVIRONMENT LACUNA_NIC=ofi:tcp LABELS programs TIMEOUT ${share_timeout}
      PASS_REGULAR_EXPRESSION "\"verified\": true,[^a-z]*\"rows\"" SKIP_REGULAR_EXPRESSION "NIC ofi needs libfabric")
    add_test(NAME handover.${example}_corrupted COMMAND ${example} --tokens 200 --layers 2 --repeats 1 --method pack)
    set_tests_properties(handover.${example} PROPERTIES PASS_REGULAR_EXPRESSION "\"verified\": true,[^a-z]*\"rows\"")
    set_tests_properties(handover.${example}_corrupted PROPERTIES
      ENVIRONMENT LACUNA_TEST_FAULT=corrupt PASS_REGULAR_EXPRESSION "and should be 0x[0-9a-f]*: byte 0 of K of layer 0, token 0")
    set_tests_properties(handover.${example} handover.${example}_corrupted PROPERTIES LABELS programs TIMEOUT ${share_timeout})
  endforeach()
  add_test(NAME handover.kv_handover_latent COMMAND kv_handover --case latent --tokens 1000 --head-bytes 576 --layers 1 --repeats 1 --json)
  set_tests_properties(handover.kv_handover_latent PROPERTIES
    PASS_REGULAR_EXPRESSION "\"verified\": true,[^a-z]*\"rows\"" LABELS programs TIMEOUT ${share_timeout})
endif()

if(LACUNA_EXAMPLES AND LACUNA_SANITIZE STREQUAL "none")
  add_test(NAME examples.kv_cache COMMAND kv_cache)
  set_tests_properties(examples.kv_cache PROPERTIES PASS_REGULAR_EXPRESSION "^2097152 bytes arrived" LABELS programs TIMEOUT ${share_timeout})
endif()

# The public API: each file of tests/api compiles with the public headers alone, and with WRONG does not, with the error
# that its first line has: by the compiler of the build, and by Clang. What the libraries export is compared with
# lacuna.h.
function(add_api_tests name file compiler)
  file(STRINGS ${file} expected LIMIT_COUNT 1)
  string(REGEX REPLACE "^// with WRONG: " "" expected "${expected}")
  set(command ${compiler} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR}/include)
  add_test(NAME ${name} COMMAND ${command} -Wall -Wextra -Wpedantic -Werror ${file})
  add_test(NAME ${name}_wrong COMMAND ${command} -DWRONG ${file})
  set_tests_properties(${name}_wrong PROPERTIES PASS_REGULAR_EXPRESSION "error: .*${expected}")
  set_tests_properties(${name} ${name}_wrong PROPERTIES LABELS api TIMEOUT ${share_timeout})
endfunction()
if(LACUNA_SANITIZE STREQUAL "none")
  file(GLOB api_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/api/*.cpp)
  find_program(LACUNA_CLANG clang++)
  foreach(file IN LISTS api_files)
    cmake_path(GET file STEM name)
    add_api_tests(api.${name} ${file} ${CMAKE_CXX_COMPILER})
    if(LACUNA_CLANG)
      add_api_tests(api.${name}_clang ${file} ${LACUNA_CLANG})
    endif()
  endforeach()
  if(NOT LACUNA_CLANG)
    # Counted as skipped, by a name that says why (Debian: clang).
    add_test(NAME api.by_clang_which_is_not_here COMMAND false)
    set_tests_properties(api.by_clang_which_is_not_here PROPERTIES DISABLED TRUE LABELS api)
  endif()
  set(exporting lacuna_mpi_openmpi lacuna_mpi_mpich lacuna_mpi_abi)
  if(BUILD_SHARED_LIBS)
    list(APPEND exporting lacuna)
  endif()
  list(TRANSFORM exporting REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  add_test(NAME api.exports COMMAND ${PROJECT_SOURCE_DIR}/tests/api/exports.sh ${exporting})
  set_tests_properties(api.exports PROPERTIES LABELS api TIMEOUT ${share_timeout})
endif()
