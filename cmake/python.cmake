# lacuna._core, the worker beside it, and the module's type stub. Component "python", which only the wheel installs.

if(NOT EXISTS ${PROJECT_SOURCE_DIR}/python/core/core.cpp)
  message(WARNING "python/core/core.cpp is missing: the package is built without its module")
else()
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  # From 3.12 on one module serves all later versions, if scikit-build-core asks for it (py-api in pyproject.toml).
  # CMake has the target since 3.26; on Linux it is the same as that of a module.
  if(SKBUILD_SABI_COMPONENT AND NOT TARGET Python::SABIModule)
    add_library(Python::SABIModule ALIAS Python::Module)
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)

  file(GLOB core_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/core/*.cpp)
  nanobind_add_module(_core NB_STATIC NB_DOMAIN lacuna STABLE_ABI ${core_sources})
  target_link_libraries(_core PRIVATE lacuna_tools lacuna_fmt lacuna_sanitize lacuna_self_contained)
  target_link_options(_core PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/python/core/exports.map)
  set_target_properties(_core PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/python/core/exports.map)
  target_compile_options(_core PRIVATE -Wall -Wextra $<$<BOOL:${LACUNA_WERROR}>:-Werror>)
  target_compile_options(_core PRIVATE ${LACUNA_FEW_COLLECTIONS})
  compile_at_once(_core)
  if(TARGET nanobind-static-abi3)
    compile_at_once(nanobind-static-abi3)
  else()
    compile_at_once(nanobind-static)
  endif()
  put_in_wheel(_core lacuna)

  if(LACUNA_SANITIZE STREQUAL "none")  # a sanitized module does not load into a plain interpreter
    nanobind_add_stub(_core_stub MODULE _core OUTPUT _core.pyi PATTERN_FILE ${PROJECT_SOURCE_DIR}/cmake/core.pat
      PYTHON_PATH $<TARGET_FILE_DIR:_core> DEPENDS _core)
    install(FILES ${PROJECT_BINARY_DIR}/_core.pyi DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL)
    add_dependencies(lacuna_python _core_stub)
  endif()
endif()

if(TARGET lacuna-worker)
  put_in_wheel(lacuna-worker lacuna/bin)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/lacuna/nic/model/profiles DESTINATION lacuna COMPONENT python EXCLUDE_FROM_ALL)
endif()

if(LACUNA_TESTS)  # what tests of the package start
  add_dependencies(lacuna_python lacuna-faulty-worker ${faulty_benches})
endif()
