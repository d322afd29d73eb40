# bench/<name>.cpp becomes the executable lacuna_<name>.

find_package(benchmark REQUIRED)

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(lacuna_${name} ${source})
  target_include_directories(lacuna_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(lacuna_${name} PRIVATE lacuna benchmark::benchmark benchmark::benchmark_main fmt::fmt lacuna_options)
endforeach()
