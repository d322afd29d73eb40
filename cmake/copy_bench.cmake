# lacuna-copy-bench measures copies; `lacuna bench copy` starts it. The hand loops are compiled for this machine, as
# their users compile them.

find_package(nlohmann_json REQUIRED)
# What the benches against MPIs share: the layouts, the loops by hand, an MPI behind its shim.
add_library(lacuna_contenders OBJECT tools/bench/copy/cases.cpp tools/bench/copy/hand.cpp tools/bench/copy/mpi.cpp)
target_link_libraries(lacuna_contenders PUBLIC lacuna_tools lacuna_fmt ${CMAKE_DL_LIBS} lacuna_options)
set_source_files_properties(tools/bench/copy/hand.cpp tools/bench/copy/drawn_hand.cpp tools/bench/copy/limit.cpp PROPERTIES COMPILE_OPTIONS "-O3;-march=native")

add_executable(lacuna-copy-bench tools/bench/copy/arena.cpp tools/bench/copy/drawn.cpp tools/bench/copy/drawn_hand.cpp tools/bench/copy/limit.cpp tools/bench/copy/main.cpp tools/bench/copy/measure.cpp tools/bench/copy/rows.cpp)
target_link_libraries(lacuna-copy-bench PRIVATE lacuna_contenders lacuna_self_contained)
compile_at_once(lacuna_contenders)
compile_at_once(lacuna-copy-bench)
put_in_wheel(lacuna-copy-bench lacuna/bin)
if(LACUNA_PYTHON)
  file(GLOB mpi_programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/mpi/*.c ${PROJECT_SOURCE_DIR}/tools/bench/mpi/*.h)
  install(FILES tools/bench/copy/mpi_shim.c tools/bench/copy/mpi_shim.h ${mpi_programs} DESTINATION lacuna/shim COMPONENT python EXCLUDE_FROM_ALL)
endif()
