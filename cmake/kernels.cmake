# The kernels are written as they should run; vectorised by the compiler, a scatter of 8 bytes takes half as long again.
set(kernels kernels.cpp tiles.cpp shuffles.cpp irregular.cpp)
list(TRANSFORM kernels PREPEND ${CMAKE_CURRENT_LIST_DIR}/../lacuna/copy/)
foreach(kernel IN LISTS kernels)
  cmake_path(NORMAL_PATH kernel)
  set_source_files_properties(${kernel} PROPERTIES COMPILE_OPTIONS "-fno-tree-vectorize;-fno-tree-slp-vectorize")
endforeach()
