# The C and C++ library within the package, for `lacuna config` and for the examples (`lacuna paper f13`): a shared
# library, the headers, a CMake package and a pkg-config file, all relative to where they lie. The library has one name,
# without a version: a wheel has no symbolic links, and would bring it once for each name.

add_lacuna_library(lacuna_shared SHARED)
set_target_properties(lacuna_shared PROPERTIES OUTPUT_NAME lacuna EXPORT_NAME lacuna LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/shared)
install(TARGETS lacuna_shared EXPORT lacunaPythonTargets
  LIBRARY DESTINATION lacuna/lib COMPONENT python EXCLUDE_FROM_ALL
  FILE_SET HEADERS DESTINATION lacuna/include COMPONENT python EXCLUDE_FROM_ALL)
install(EXPORT lacunaPythonTargets FILE lacunaTargets.cmake NAMESPACE lacuna:: DESTINATION lacuna/lib/cmake/lacuna
  COMPONENT python EXCLUDE_FROM_ALL)
add_dependencies(lacuna_python lacuna_shared)

set(python_files ${PROJECT_BINARY_DIR}/python_library)
file(WRITE ${python_files}/lacunaConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/lacunaTargets.cmake\")\n")
block()
  set(LACUNA_PC_TO_PREFIX ../..)
  set(LACUNA_PC_LIBDIR "\${prefix}/lib")
  set(LACUNA_PC_INCLUDEDIR "\${prefix}/include")
  set(LACUNA_PC_REQUIRES_PRIVATE "")
  set(LACUNA_PC_LIBS_PRIVATE "")
  configure_file(cmake/lacuna.pc.in ${python_files}/lacuna.pc @ONLY)
endblock()
install(FILES ${python_files}/lacunaConfig.cmake ${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake DESTINATION lacuna/lib/cmake/lacuna
  COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${python_files}/lacuna.pc DESTINATION lacuna/lib/pkgconfig COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY examples DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL)
# The pages that the command's help names.
install(DIRECTORY docs DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.md")
