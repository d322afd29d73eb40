# `make deb`: the C and C++ library and the interposer as a Debian package, by CPack. What it depends on, dpkg-shlibdeps
# finds in the files.

set(debian ${PROJECT_BINARY_DIR}/debian)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT library)
find_program(LACUNA_GZIP gzip)
if(LACUNA_GZIP)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/debian/changelog)
  file(MAKE_DIRECTORY ${debian})
  execute_process(COMMAND ${LACUNA_GZIP} -9nc ${PROJECT_SOURCE_DIR}/packaging/debian/changelog
    OUTPUT_FILE ${debian}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${debian}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
endif()

# Which package a program needs that is linked with the library, and that the linker's cache has to be made anew.
file(WRITE ${debian}/shlibs "liblacuna ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} lacuna (>= ${PROJECT_VERSION})\n")
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lacuna)
set(CPACK_PACKAGE_VENDOR "The Lacuna authors")
set(CPACK_PACKAGE_CONTACT "The Lacuna authors <lacuna@lacuna.invalid>")  # the project has no address: RFC 2606
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fast transfers of data with gaps between processes")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "Sends blocks at scattered addresses in one process to scattered addresses in\nanother, by the fastest way that the machine offers.\nThe C and C++ library, and libraries that are preloaded into unmodified MPI\nprograms.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME lacuna)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/shlibs ${debian}/triggers)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Of the library's own files, which dpkg-shlibdeps would look for among installed packages.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
include(CPack)
