# What the package needs to compile the examples with an MPI's own wrapper (`lacuna paper f13`): their sources, the
# headers for C and C++, and the library, which all else in the package has within itself.

if(LACUNA_PYTHON)
  set(examples_lacuna lacuna)
  if(NOT BUILD_SHARED_LIBS)
    set(examples_lacuna lacuna_shared)
    add_lacuna_library(lacuna_shared SHARED)
    set_target_properties(lacuna_shared PROPERTIES OUTPUT_NAME lacuna LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
  endif()
  install(TARGETS ${examples_lacuna} LIBRARY DESTINATION lacuna/lib COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY examples DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY include DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL)
endif()
