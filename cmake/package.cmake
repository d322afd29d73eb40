# `make deb`: the C and C++ library and the interposer as a Debian package, by CPack. What it depends on, dpkg-shlibdeps
# finds in the files.

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT library)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lacuna)
set(CPACK_PACKAGE_VENDOR "The Lacuna authors")
set(CPACK_PACKAGE_CONTACT "The Lacuna authors <lacuna@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "fast transfers of data with gaps between processes")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION}.\nThe C and C++ library, and libraries that are preloaded into unmodified MPI programs.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME lacuna)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Of the library's own files, which dpkg-shlibdeps would look for among installed packages.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
include(CPack)
