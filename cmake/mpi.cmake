# Nothing preloads a library with a sanitizer.
if(NOT LACUNA_SANITIZE STREQUAL "none")
  return()
endif()

# liblacuna_mpi_openmpi, _mpich and _abi (that of MPI-5.0): the interposer, once for each ABI. No MPI is needed to build
# them.

file(GLOB_RECURSE lacuna_mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/mpi/*.cpp)
foreach(abi openmpi mpich abi)
  set(target lacuna_mpi_${abi})
  string(TOUPPER ${abi} upper)
  if(abi STREQUAL "abi")
    set(upper STANDARD)
  endif()
  add_library(${target} SHARED ${lacuna_mpi_sources})
  target_compile_definitions(${target} PRIVATE LACUNA_MPI_ABI_${upper})
  compile_at_once(${target})
  # The library is there when the program starts, so its variables of threads have places of their own.
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec)
  # Nothing but MPI's names, and dlsym (lookup.hpp), shall come before the program's own symbols.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/lacuna/mpi/exports.map -Wl,-Bsymbolic-functions -Wl,-z,nodelete)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/mpi/exports.map INSTALL_RPATH "$ORIGIN")
  target_link_libraries(${target} PRIVATE lacuna_inside lacuna_fmt ${CMAKE_DL_LIBS} lacuna_options lacuna_self_contained)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
  put_in_wheel(${target} lacuna/lib)
endforeach()
