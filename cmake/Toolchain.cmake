# Compiler settings: warnings, linker, compiler cache, sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
# Line tables only: libtorch's headers make full debug information large and slow to link.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

option(FOREGRAD_CHECKED "Check invariants while running: metadata again after each layer, graphs after each pass" OFF)
option(FOREGRAD_WERROR "Make warnings errors" ON)
set(FOREGRAD_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example `address,undefined`")

# Every target of this project links it.
add_library(foregrad_options INTERFACE)
target_compile_options(foregrad_options INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${FOREGRAD_WERROR}>:-Werror>)
target_compile_definitions(foregrad_options INTERFACE FOREGRAD_CHECKED=$<BOOL:${FOREGRAD_CHECKED}>)

if(FOREGRAD_SANITIZE)
  target_compile_options(foregrad_options INTERFACE
    -fsanitize=${FOREGRAD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  if(FOREGRAD_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # libtorch's headers have fences, which GCC's thread sanitizer does not follow.
    target_compile_options(foregrad_options INTERFACE -Wno-tsan)
  endif()
  # libtorch's Half and BFloat16 convert out-of-range floats on purpose; its vptrs have no type information here.
  if(FOREGRAD_SANITIZE MATCHES "undefined")
    target_compile_options(foregrad_options INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(foregrad_options INTERFACE -fsanitize=${FOREGRAD_SANITIZE})
endif()

find_program(FOREGRAD_MOLD mold)
if(FOREGRAD_MOLD AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
   OR FOREGRAD_MOLD AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  target_link_options(foregrad_options INTERFACE -fuse-ld=mold)
endif()

find_program(FOREGRAD_CCACHE ccache)
if(FOREGRAD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The tests' precompiled header needs these; GCC also needs -fpch-preprocess.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${FOREGRAD_CCACHE}")
endif()
