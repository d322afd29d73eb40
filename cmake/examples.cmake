# Each folder of examples/ with a CMakeLists.txt. Targets may be named before they are defined, so the order does not
# matter.

file(GLOB example_lists CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*/CMakeLists.txt)
foreach(list IN LISTS example_lists)
  cmake_path(GET list PARENT_PATH folder)
  add_subdirectory(${folder})
endforeach()
