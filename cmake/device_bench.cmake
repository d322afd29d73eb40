# lacuna-device-bench measures copies of device memory (`lacuna bench device`). Only with support for GPUs: its
# baselines are GPU code.

if(LACUNA_CUDA_INCLUDE_DIR)
  file(GLOB device_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/device/*.cpp)
  set(baseline_images ${PROJECT_BINARY_DIR}/baseline_images.cpp)
  compile_kernels(${PROJECT_SOURCE_DIR}/tools/bench/device/baselines.cu ${baseline_images} lacuna::bench baseline_images)
  add_executable(lacuna-device-bench ${device_bench_sources} ${baseline_images})
  target_include_directories(lacuna-device-bench SYSTEM PRIVATE ${LACUNA_CUDA_INCLUDE_DIR})
  target_link_libraries(lacuna-device-bench PRIVATE lacuna_tools lacuna_fmt ${CMAKE_DL_LIBS} lacuna_options lacuna_self_contained)
  put_in_wheel(lacuna-device-bench lacuna/bin)
endif()
