# tools/bench/micro/<name>.cpp becomes the executable lacuna_<name>.

find_package(benchmark REQUIRED)
add_custom_target(lacuna_benchmarks)

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/micro/*.cpp)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(lacuna_${name} ${source})
  target_link_libraries(lacuna_${name} PRIVATE lacuna_tools benchmark::benchmark benchmark::benchmark_main fmt::fmt lacuna_options)
  add_dependencies(lacuna_benchmarks lacuna_${name})
endforeach()
target_link_libraries(lacuna_plan_bench PRIVATE lacuna_handover)
