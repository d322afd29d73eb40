# The library: every lacuna/<layer>/**.cpp but the interposer (cmake/mpi.cmake) and what cmake/self_contained.cmake
# adds, and the plug-in for NIXL (cmake/nixl.cmake). Each source is compiled once, into lacuna_objects.
#   lacuna         shared or static, as BUILD_SHARED_LIBS says: what is installed
#   lacuna_static  the same, static: for the interposers, the tools, the tests and the Python package, which carry the
#                  library within themselves

file(GLOB_RECURSE lacuna_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/*.cpp)
list(FILTER lacuna_sources EXCLUDE REGEX "/lacuna/(mpi|nixl)/|/self_contained/")

include(cmake/device.cmake)

# The public headers. lacuna/c/ within it is where they were until 0.1.
file(GLOB_RECURSE lacuna_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.hpp)

set(lacuna_dependencies $<BUILD_INTERFACE:lacuna_fmt> $<BUILD_INTERFACE:lacuna_sodium> Threads::Threads)

add_library(lacuna_objects OBJECT ${lacuna_sources})
target_include_directories(lacuna_objects PUBLIC ${PROJECT_SOURCE_DIR})
# The third-party headers are for the .cpp files alone.
target_include_directories(lacuna_objects SYSTEM PRIVATE ${LACUNA_HIGHWAY_INCLUDE_DIR} ${LACUNA_XXHASH_INCLUDE_DIR} ${LACUNA_VERBS_INCLUDE_DIR}
  ${LACUNA_FABRIC_INCLUDE_DIR})
if(LACUNA_CUDA_INCLUDE_DIR)
  target_include_directories(lacuna_objects SYSTEM PRIVATE ${LACUNA_CUDA_INCLUDE_DIR})
endif()
target_compile_definitions(lacuna_objects PRIVATE LACUNA_VERSION="${PROJECT_VERSION}")
target_link_libraries(lacuna_objects PRIVATE ${lacuna_dependencies} nlohmann_json::nlohmann_json lacuna_options)
include(cmake/kernels.cmake)

if(LACUNA_SANITIZE STREQUAL "address")
  target_compile_definitions(lacuna_objects PRIVATE LACUNA_FEWER_TARGETS)
elseif(LACUNA_SANITIZE STREQUAL "thread")  # which is told nothing by kernels
  target_compile_definitions(lacuna_objects PRIVATE HWY_COMPILE_ONLY_STATIC)
endif()

# Most of what compiling takes is reading the same headers.
target_precompile_headers(lacuna_objects PRIVATE
  <algorithm> <array> <atomic> <bit> <cerrno> <cmath> <cstdint> <cstdlib> <cstring> <deque> <expected> <functional> <limits> <map> <memory> <mutex>
  <optional> <span> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <vector> <fmt/format.h>)

# Files that stay alone: those that Highway compiles for each instruction set, and those that name something as another
# file of their layer does.
set(alone "/copy/(kernels|tiles|shuffles|irregular|windows|transpack)" "/layout/join_runs" "/method/[a-z_]+" "/guide/learned"
  "/protocol/bootstrap/(by_tcp|tcp_mesh)" "/nic/verbs/mlx5" "/collective/program" "/device/[a-z_]+" "/kernel_images")
if(LACUNA_UNITY)
  set_target_properties(lacuna_objects PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(JOIN alone "|" alone)
  foreach(source IN LISTS lacuna_sources)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR}/lacuna ${folder})
    string(MAKE_C_IDENTIFIER ${group} group)
    if(source MATCHES "/guide/(json_fields|profile|mpi_profile)\\.cpp$")
      set(group guide_json)
    endif()
    if(NOT source MATCHES "(${alone})\\.cpp$")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endif()

# add_lacuna_library(NAME [SHARED|STATIC]): the whole library. A shared one exports lacuna.h's names and no other: what
# it has of fmt and of the standard library must not take the place of its user's.
function(add_lacuna_library name)
  add_library(${name} ${ARGN} $<TARGET_OBJECTS:lacuna_objects>)
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${lacuna_headers})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_libraries(${name} PRIVATE ${lacuna_dependencies} $<BUILD_INTERFACE:lacuna_sanitize>)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:lacuna_self_contained>)
    target_link_options(${name} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/lacuna/c/exports.map)
    set_target_properties(${name} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/c/exports.map)
  else()  # what the users of an installed archive link (cmake/lacunaConfig.cmake.in)
    target_link_libraries(${name} INTERFACE $<INSTALL_INTERFACE:PkgConfig::libsodium>)
    if(NOT LACUNA_SELF_CONTAINED)
      target_link_libraries(${name} INTERFACE $<INSTALL_INTERFACE:fmt::fmt>)
    endif()
  endif()
endfunction()

add_lacuna_library(lacuna)
add_library(lacuna::lacuna ALIAS lacuna)
# Until 1.0 every minor version may change the binary interface.
set_target_properties(lacuna PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
if(BUILD_SHARED_LIBS)
  add_lacuna_library(lacuna_static STATIC)
else()
  add_library(lacuna_static ALIAS lacuna)
endif()

# lacuna_inside: lacuna_static with the layers' own headers, for what is built here and has to look inside. No such
# header is installed.
add_library(lacuna_inside INTERFACE)
target_link_libraries(lacuna_inside INTERFACE lacuna_static)
target_include_directories(lacuna_inside INTERFACE ${PROJECT_SOURCE_DIR})
