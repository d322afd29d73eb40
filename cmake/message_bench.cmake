# lacuna-message-bench measures messages; `lacuna bench messages` has an MPI's mpiexec start two of it.

file(GLOB message_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/messages/*.cpp)
add_executable(lacuna-message-bench ${message_bench_sources})
target_link_libraries(lacuna-message-bench PRIVATE lacuna_contenders)
if(LACUNA_PYTHON)
  install(TARGETS lacuna-message-bench RUNTIME DESTINATION lacuna/bin COMPONENT python EXCLUDE_FROM_ALL)
endif()
