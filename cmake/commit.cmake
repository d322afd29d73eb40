# cmake -D SOURCES=DIR -D HEADER=FILE -P: writes of which commit the sources are, for programs whose failures are to be
# seen again elsewhere. Without git, or in an archive: of none.
find_program(git git)
if(git)
  execute_process(COMMAND ${git} describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCES}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit)
  set(commit "no commit")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define LACUNA_COMMIT \"${commit}\"\n")
