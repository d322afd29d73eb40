# The C and C++ library as others find it: headers, library, CMake package, pkg-config file. Component "library".

include(CMakePackageConfigHelpers)

set(lacuna_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lacuna)
install(TARGETS lacuna EXPORT lacunaTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT lacunaTargets NAMESPACE lacuna:: DESTINATION ${lacuna_cmake_dir} COMPONENT library)

configure_package_config_file(cmake/lacunaConfig.cmake.in ${PROJECT_BINARY_DIR}/lacunaConfig.cmake
  INSTALL_DESTINATION ${lacuna_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lacunaConfig.cmake ${PROJECT_BINARY_DIR}/lacunaConfigVersion.cmake
  DESTINATION ${lacuna_cmake_dir} COMPONENT library)

# Only a static library makes its users link what it uses.
set(LACUNA_PC_REQUIRES_PRIVATE "")
set(LACUNA_PC_LIBS_PRIVATE "")
if(NOT BUILD_SHARED_LIBS)
  set(LACUNA_PC_REQUIRES_PRIVATE "libsodium")
  if(NOT LACUNA_SELF_CONTAINED)
    string(PREPEND LACUNA_PC_REQUIRES_PRIVATE "fmt, ")
  endif()
  set(LACUNA_PC_LIBS_PRIVATE "-pthread -lstdc++ -lm")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(LACUNA_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(LACUNA_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
# Relative to the file itself, so that `cmake --install --prefix` and a moved prefix are right.
file(RELATIVE_PATH LACUNA_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/lacuna.pc.in ${PROJECT_BINARY_DIR}/lacuna.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lacuna.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)

install(TARGETS lacuna-worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)

# Platforms for nic::simulate().
install(DIRECTORY ${PROJECT_SOURCE_DIR}/lacuna/nic/model/profiles DESTINATION ${CMAKE_INSTALL_DATADIR}/lacuna COMPONENT library)
