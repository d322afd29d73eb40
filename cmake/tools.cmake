# What measures: tools/README.md has the rooms. It links the library from outside, and none of it is in liblacuna or an
# interposer.
#   lacuna_tools   tools/corpus, tools/measure and tools/worker: for the worker, the benches, the Python module and the
#                  tests

file(GLOB tools_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/corpus/*.cpp ${PROJECT_SOURCE_DIR}/tools/measure/*.cpp
  ${PROJECT_SOURCE_DIR}/tools/worker/*.cpp)
list(FILTER tools_sources EXCLUDE REGEX "/main\\.cpp$")
add_library(lacuna_tools STATIC ${tools_sources})
target_link_libraries(lacuna_tools PUBLIC lacuna_inside nlohmann_json::nlohmann_json PRIVATE lacuna_fmt lacuna_options)
if(LACUNA_UNITY)  # the files of a folder together, but for those that name something as another one does
  set_target_properties(lacuna_tools PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS tools_sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME room)
    if(NOT source MATCHES "/(case_json|by_hand|key_costs|simulate|other_machine)\\.cpp$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
    endif()
  endforeach()
endif()

# The second process of a measurement, started by `lacuna guide` and by the tests.
add_executable(lacuna-worker tools/worker/main.cpp)
target_link_libraries(lacuna-worker PRIVATE lacuna_tools lacuna_options lacuna_self_contained)

# The same with faults that tests plant (LACUNA_TEST_FAULT), to see that they are noticed. It is installed nowhere.
if(LACUNA_TESTS)
  add_executable(lacuna-faulty-worker tools/worker/main.cpp)
  target_compile_definitions(lacuna-faulty-worker PRIVATE LACUNA_TEST_FAULTS)
  target_link_libraries(lacuna-faulty-worker PRIVATE lacuna_tools lacuna_options)
endif()

# KV caches handed over by every method, and what planning and posting cost: kv_handover and reshard.
set(hand_overs OFF)
if(LACUNA_BENCH OR (LACUNA_TESTS AND LACUNA_SANITIZE STREQUAL "none"))
  set(hand_overs ON)
  file(GLOB handover_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/handover/*.cpp)
  list(FILTER handover_sources EXCLUDE REGEX "/(kv_handover|reshard)\\.cpp$")
  add_library(lacuna_handover STATIC ${handover_sources})
  target_link_libraries(lacuna_handover PUBLIC lacuna_inside fmt::fmt PRIVATE nlohmann_json::nlohmann_json lacuna_options)
  compile_at_once(lacuna_handover)
  # A class with a member of an unnamed namespace
  set_source_files_properties(tools/handover/posting_nic.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(program kv_handover reshard)
    add_executable(${program} tools/handover/${program}.cpp)
    target_link_libraries(${program} PRIVATE lacuna_handover lacuna_options)
  endforeach()
endif()
