# LACUNA_SELF_CONTAINED: what is installed needs glibc alone, and libgcc_s, which glibc needs itself. fmt, libsodium and
# libstdc++ lie within each library and program, with hidden symbols: a preloaded library brings nothing that could take
# the place of the program's own. libgcc stays shared: a stack is unwound by one copy of it. With two, a thread that is
# cancelled within a call ends the program.
# A package of a distribution may want OFF. A sanitizer needs shared libraries.
#   lacuna_fmt, lacuna_sodium   what is compiled and linked
#   lacuna_self_contained       for each library and program that is installed

find_library(LACUNA_SODIUM_ARCHIVE libsodium.a)
set(self_contained OFF)
if(LACUNA_SANITIZE STREQUAL "none" AND LACUNA_SODIUM_ARCHIVE AND TARGET fmt::fmt-header-only)
  set(self_contained ON)
endif()
option(LACUNA_SELF_CONTAINED "Installed libraries and programs need glibc and libgcc_s alone" ${self_contained})

add_library(lacuna_fmt INTERFACE)
add_library(lacuna_sodium INTERFACE)
add_library(lacuna_self_contained INTERFACE)
if(NOT LACUNA_SELF_CONTAINED)
  target_link_libraries(lacuna_fmt INTERFACE fmt::fmt)
  target_link_libraries(lacuna_sodium INTERFACE PkgConfig::libsodium)
elseif(NOT self_contained)
  message(FATAL_ERROR "LACUNA_SELF_CONTAINED is ON: it needs libsodium.a and fmt's headers, and no sanitizer")
else()
  target_link_libraries(lacuna_fmt INTERFACE fmt::fmt-header-only)
  target_link_libraries(lacuna_sodium INTERFACE ${LACUNA_SODIUM_ARCHIVE})
  target_include_directories(lacuna_sodium SYSTEM INTERFACE ${libsodium_INCLUDE_DIRS})
  # Within each of them: libstdc++, which needs it, is linked last
  set(older_glibc ${PROJECT_SOURCE_DIR}/lacuna/base/self_contained/older_glibc.cpp)
  set_source_files_properties(${older_glibc} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(lacuna_self_contained INTERFACE ${older_glibc})
  target_link_options(lacuna_self_contained INTERFACE -static-libstdc++ -Wl,--exclude-libs,ALL)
endif()
