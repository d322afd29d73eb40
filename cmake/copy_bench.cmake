# lacuna-copy-bench measures copies; `lacuna bench copy` starts it. The hand loops are compiled for this machine, as their users compile them.

find_package(nlohmann_json REQUIRED)
file(GLOB copy_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/copy/*.cpp)
add_executable(lacuna-copy-bench ${copy_bench_sources})
target_include_directories(lacuna-copy-bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(lacuna-copy-bench PRIVATE lacuna fmt::fmt nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS} lacuna_options)
set_source_files_properties(bench/copy/hand.cpp bench/copy/limit.cpp PROPERTIES COMPILE_OPTIONS "-O3;-march=native")
if(LACUNA_PYTHON)
  install(TARGETS lacuna-copy-bench RUNTIME DESTINATION lacuna/bin COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES bench/copy/mpi_shim.c bench/copy/mpi_shim.h DESTINATION lacuna/shim COMPONENT python EXCLUDE_FROM_ALL)
endif()
