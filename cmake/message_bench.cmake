# What an MPI's mpiexec starts two of: lacuna-message-bench measures messages (`lacuna bench messages`),
# lacuna-mpi-bench an MPI with and without Lacuna in front of it (`lacuna bench mpi`).

# What they share: two ranks, the memory of a case, and turns that are timed and verified.
file(GLOB job_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/job/*.cpp)
add_library(lacuna_job OBJECT ${job_sources})
target_link_libraries(lacuna_job PUBLIC lacuna_contenders)
if(LACUNA_TESTS)  # which plant faults; a wheel is built without
  target_compile_definitions(lacuna_job PRIVATE LACUNA_TEST_FAULTS)
endif()
compile_at_once(lacuna_job)

function(add_job_bench name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/${folder}/*.cpp)
  add_executable(${name} ${sources})
  # Both: an object library hands its objects to those who link it themselves, and to nobody further.
  target_link_libraries(${name} PRIVATE lacuna_job lacuna_contenders lacuna_self_contained)
  compile_at_once(${name})
  if(LACUNA_PYTHON)
    install(TARGETS ${name} RUNTIME DESTINATION lacuna/bin COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endfunction()
add_job_bench(lacuna-message-bench messages)
add_job_bench(lacuna-mpi-bench mpi)
