# tools/bench/micro/<name>.cpp becomes the executable lacuna_<name>. That of planning is about what the examples do, and needs them.

find_package(benchmark REQUIRED)
add_custom_target(lacuna_benchmarks)

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/micro/*.cpp)
if(NOT LACUNA_EXAMPLES)
  list(FILTER bench_sources EXCLUDE REGEX "/plan_bench\\.cpp$")
endif()
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(lacuna_${name} ${source})
  target_include_directories(lacuna_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(lacuna_${name} PRIVATE lacuna benchmark::benchmark benchmark::benchmark_main fmt::fmt lacuna_options)
  add_dependencies(lacuna_benchmarks lacuna_${name})
endforeach()
if(LACUNA_EXAMPLES)
  target_link_libraries(lacuna_plan_bench PRIVATE lacuna_example_support)
endif()
