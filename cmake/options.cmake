# lacuna_options: how Lacuna's own targets are compiled. Never exported.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Lacuna needs std::expected: GCC 12 or newer (found ${CMAKE_CXX_COMPILER_VERSION})")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "Lacuna needs std::expected: Clang 16 or newer (found ${CMAKE_CXX_COMPILER_VERSION})")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  # Until 19, Clang claims older concepts than GCC's <expected> asks for, and compiles that header all the same.
  add_compile_options(-D__cpp_concepts=202002L -Wno-macro-redefined -Wno-builtin-macro-redefined)
endif()

# Compiles all files of a target at once: most of what compiling takes is reading the same headers. A file with options
# of its own stays alone.
function(compile_at_once target)
  if(LACUNA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# A tenth of the time that GCC takes goes into collecting garbage, unless it may take more memory.
set(LACUNA_FEW_COLLECTIONS $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=300> $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)

# Checks of UndefinedBehaviorSanitizer. AddressSanitizer sees most of what the checks left out are for: null pointers,
# objects that are too small, and pointers that point elsewhere, once they are used. Those checks are a fifth of what
# such a build takes.
set(LACUNA_UNDEFINED some CACHE STRING "Checks of UndefinedBehaviorSanitizer in builds with AddressSanitizer: some, or all")
set_property(CACHE LACUNA_UNDEFINED PROPERTY STRINGS some all)
if(NOT LACUNA_UNDEFINED MATCHES "^(some|all)$")
  message(FATAL_ERROR "LACUNA_UNDEFINED is '${LACUNA_UNDEFINED}'; it may be some or all")
endif()

add_library(lacuna_sanitize INTERFACE)
if(LACUNA_SANITIZE STREQUAL "address")
  set(sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(LACUNA_UNDEFINED STREQUAL "some")
    list(APPEND sanitize_flags -fno-sanitize=null,object-size,vptr,pointer-overflow)
  endif()
elseif(LACUNA_SANITIZE STREQUAL "thread")
  set(sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(LACUNA_SANITIZE STREQUAL "none")
  set(sanitize_flags "")
else()
  message(FATAL_ERROR "LACUNA_SANITIZE is '${LACUNA_SANITIZE}'; it may be none, address or thread")
endif()
target_compile_options(lacuna_sanitize INTERFACE ${sanitize_flags})
target_link_options(lacuna_sanitize INTERFACE ${sanitize_flags})

add_library(lacuna_options INTERFACE)
target_link_libraries(lacuna_options INTERFACE lacuna_sanitize)
target_compile_options(lacuna_options INTERFACE
  -Wall -Wextra -Wpedantic
  -Wcast-align -Wcast-qual -Wdouble-promotion -Wformat=2 -Wnon-virtual-dtor -Woverloaded-virtual -Wundef -Wvla
  -Wno-missing-field-initializers  # designated initialisers leave out what has a default
  # No -Wshadow: nested LACUNA_TRY shadow each other, by design.
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-branches -Wduplicated-cond -Wlogical-op>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-statement-expression-from-macro-expansion>  # verbs_get_ctx_op of verbs.h
  # False positives of GCC 12: std::string's operator+ (GCC bug 105651), and what the sanitizers rewrote.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<NOT:$<STREQUAL:${LACUNA_SANITIZE},none>>:-Wno-maybe-uninitialized>
  $<$<BOOL:${LACUNA_WERROR}>:-Werror>
  ${LACUNA_FEW_COLLECTIONS})
