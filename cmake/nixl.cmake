# libplugin_LACUNA: the plug-in for NIXL. Nothing of NIXL is needed to build it (lacuna/nixl/interface.hpp). NIXL looks
# for plug-ins in the folder that NIXL_PLUGIN_DIR names, and loads what it finds there; so the plug-in has a folder of
# its own.

file(GLOB lacuna_nixl_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/nixl/*.cpp)
add_library(lacuna_nixl OBJECT ${lacuna_nixl_sources})
target_link_libraries(lacuna_nixl PRIVATE lacuna_inside lacuna_fmt lacuna_options)
set_target_properties(lacuna_nixl PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
compile_at_once(lacuna_nixl)

# A library with a sanitizer is not loaded into a plain interpreter.
if(NOT LACUNA_SANITIZE STREQUAL "none")
  return()
endif()

add_library(lacuna_nixl_plugin MODULE $<TARGET_OBJECTS:lacuna_nixl>)
target_link_libraries(lacuna_nixl_plugin PRIVATE lacuna_inside lacuna_fmt lacuna_options lacuna_self_contained)
target_link_options(lacuna_nixl_plugin PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/lacuna/nixl/exports.map -Wl,-Bsymbolic-functions
  -Wl,-z,nodelete)
set_target_properties(lacuna_nixl_plugin PROPERTIES PREFIX lib OUTPUT_NAME plugin_LACUNA LINKER_LANGUAGE CXX
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/nixl LINK_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/nixl/exports.map)
install(TARGETS lacuna_nixl_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lacuna/nixl COMPONENT library)
put_in_wheel(lacuna_nixl_plugin lacuna/lib/nixl)
