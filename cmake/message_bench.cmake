# What an MPI's mpiexec starts two of: lacuna-message-bench measures messages (`lacuna bench messages`),
# lacuna-mpi-bench an MPI with and without Lacuna in front of it (`lacuna bench mpi`).

# What they share: two ranks, the memory of a case, and turns that are timed and verified.
set(planted ${PROJECT_SOURCE_DIR}/tools/bench/job/planted.cpp)
file(GLOB job_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/job/*.cpp)
list(REMOVE_ITEM job_sources ${planted})
add_library(lacuna_job OBJECT ${job_sources})
target_link_libraries(lacuna_job PUBLIC lacuna_contenders)
compile_at_once(lacuna_job)

# add_job_bench(NAME FOLDER): lacuna-NAME-bench. For the tests also lacuna-faulty-NAME-bench, which plants the fault
# that LACUNA_TEST_FAULT names; it is installed nowhere.
set(faulty_benches "")
function(add_job_bench name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/${folder}/*.cpp)
  set(objects lacuna_${name}_bench)
  add_library(${objects} OBJECT ${sources})
  target_link_libraries(${objects} PRIVATE lacuna_job)
  compile_at_once(${objects})
  set(programs lacuna-${name}-bench)
  if(LACUNA_TESTS)
    list(APPEND programs lacuna-faulty-${name}-bench)
  endif()
  foreach(program IN LISTS programs)
    add_executable(${program} ${planted})
    # All: an object library hands its objects to the targets that link it themselves, and no further.
    target_link_libraries(${program} PRIVATE ${objects} lacuna_job lacuna_contenders lacuna_self_contained)
  endforeach()
  if(LACUNA_TESTS)
    target_compile_definitions(lacuna-faulty-${name}-bench PRIVATE LACUNA_TEST_FAULTS)
    set(faulty_benches ${faulty_benches} lacuna-faulty-${name}-bench PARENT_SCOPE)
  endif()
  put_in_wheel(lacuna-${name}-bench lacuna/bin)
endfunction()
add_job_bench(message messages)
add_job_bench(mpi mpi)
add_job_bench(network network)
