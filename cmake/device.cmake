# The kernels for GPUs, and the code that talks to their driver. Both need packages of requirements/build.txt: NVRTC,
# which compiles kernels without a GPU, and cuda.h. Nothing of CUDA is linked. LACUNA_CUDA: AUTO (if the packages are
# there), ON (must be), OFF.

set(LACUNA_CUDA AUTO CACHE STRING "Build support for NVIDIA GPUs: AUTO, ON or OFF")
set_property(CACHE LACUNA_CUDA PROPERTY STRINGS AUTO ON OFF)

set(cuda_found "")
if(LACUNA_CUDA)
  find_package(Python 3.11 QUIET COMPONENTS Interpreter)
  # The first Python that had the packages compiles the kernels from then on. Another one that builds its module in this
  # folder (scripts/wheels.sh) makes nothing else be compiled again.
  foreach(python IN ITEMS "${LACUNA_KERNELS_PYTHON}" "${Python_EXECUTABLE}")
    if(NOT cuda_found AND EXISTS "${python}")
      execute_process(COMMAND ${python} ${PROJECT_SOURCE_DIR}/cmake/compile_kernels.py --find
        OUTPUT_VARIABLE cuda_found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
      set(LACUNA_KERNELS_PYTHON "${python}" CACHE INTERNAL "The Python that has NVRTC")
    endif()
  endforeach()
  if(NOT cuda_found AND LACUNA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LACUNA_CUDA is ON, but NVRTC or cuda.h is missing: pip install -r requirements/build.txt")
  endif()
endif()

# Compiles a file of kernels into a C++ file that defines NAMESPACE::FUNCTION(), which gives their code.
function(compile_kernels source output namespace function)
  cmake_path(GET source STEM name)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lacuna/device/kernel/*.hpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${LACUNA_KERNELS_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/compile_kernels.py ${source} --include ${PROJECT_SOURCE_DIR} --output ${output}
      --namespace ${namespace} --function ${function} --keep ${PROJECT_BINARY_DIR}/kernels/${name}
    DEPENDS ${source} ${headers} ${PROJECT_SOURCE_DIR}/lacuna/device/kernel.hpp ${PROJECT_SOURCE_DIR}/cmake/compile_kernels.py
    COMMENT "Compiling kernels for GPUs: ${name}" VERBATIM)
endfunction()

if(cuda_found)
  list(GET cuda_found 1 LACUNA_CUDA_INCLUDE_DIR)
  set(kernel_images ${PROJECT_BINARY_DIR}/kernel_images.cpp)
  compile_kernels(${PROJECT_SOURCE_DIR}/lacuna/device/kernel.cu ${kernel_images} lacuna::device::cuda images)
  list(FILTER lacuna_sources EXCLUDE REGEX "/device/cuda/none\\.cpp$")
  list(APPEND lacuna_sources ${kernel_images})
else()
  message(STATUS "Without support for GPUs (NVRTC or cuda.h not found, or LACUNA_CUDA is OFF)")
  list(FILTER lacuna_sources EXCLUDE REGEX "/device/cuda/(device|driver)\\.cpp$")
endif()
