# What the wheel takes. lacuna_python builds all of it, so that a package of a fresh clone has what its installation
# asks for.

if(LACUNA_PYTHON)
  add_custom_target(lacuna_python)
endif()

# put_in_wheel(TARGET FOLDER): the wheel has the program or library TARGET in FOLDER.
function(put_in_wheel target folder)
  if(LACUNA_PYTHON)
    install(TARGETS ${target} DESTINATION ${folder} COMPONENT python EXCLUDE_FROM_ALL)
    add_dependencies(lacuna_python ${target})
  endif()
endfunction()
