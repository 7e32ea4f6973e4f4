# One GoogleTest program for each folder of tests/ that holds *_test.cc files:
#   tests/<room>/   links that room's static library and what it stands on; label `unit`
#   tests/cli/      links the tool's library; label `unit`
#   tests/<other>/  (semantics, ops, error, fuzz, …) links all rooms; label `<other>`
# Every program is also labelled by its folder's name.

find_package(GTest REQUIRED)

# What libtorch's headers instantiate is most of a test file's cost.
option(FOREGRAD_UNITY_TESTS "Compile five test files in one run of the compiler: a helper's name is free once in a program" ON)

# What all tests share. Not optimised: the time of a test is in libtorch and in the libraries under test,
# and compiling is what costs.
file(GLOB _foregrad_support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
set(_foregrad_test_options -O0)
# Nor with line numbers, which are a twelfth of the compile time: a failed expectation names its line, and
# the presets that look for errors in memory keep them.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT FOREGRAD_SANITIZE)
  list(APPEND _foregrad_test_options -g0)
endif()

# The test programs use its precompiled header: compiled as they are (-fPIE, same optimisation), or GCC
# rejects it.
add_library(foregrad_test_support STATIC ${_foregrad_support})
set_target_properties(foregrad_test_support PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(foregrad_test_support PRIVATE -fPIE ${_foregrad_test_options})
target_include_directories(foregrad_test_support PUBLIC
  "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(foregrad_test_support PUBLIC
  foregrad_options foregrad_logging Foregrad::Torch GTest::gmock GTest::gtest Threads::Threads)
target_precompile_headers(foregrad_test_support PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/pch.h")

# libtorch is not built with sanitizers: what it allocates and synchronises is not seen.
set(_foregrad_test_environment "OMP_WAIT_POLICY=PASSIVE")
set(_foregrad_test_timeout 120)
if(FOREGRAD_SANITIZE)
  set(_foregrad_test_timeout 600)
  set(_foregrad_suppressions "${PROJECT_SOURCE_DIR}/tests/support/sanitizers")
  list(APPEND _foregrad_test_environment
    "ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=1"
    "LSAN_OPTIONS=suppressions=${_foregrad_suppressions}/lsan.txt:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=suppressions=${_foregrad_suppressions}/tsan.txt:ignore_noninstrumented_modules=1")
endif()
if(FOREGRAD_SANITIZE MATCHES "thread")
  # libgomp's barriers are not seen either: every parallel loop would be reported.
  list(APPEND _foregrad_test_environment "OMP_NUM_THREADS=1")
  # The thread sanitizer's shadow memory does not fit every randomised address space.
  find_program(FOREGRAD_SETARCH setarch)
endif()

include(GoogleTest)
file(GLOB_RECURSE _foregrad_test_sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
  "${PROJECT_SOURCE_DIR}/tests/*_test.cc")
set(_foregrad_test_folders "")
foreach(_foregrad_source IN LISTS _foregrad_test_sources)
  string(REGEX MATCH "^[^/]+" _foregrad_folder "${_foregrad_source}")
  list(APPEND _foregrad_test_folders "${_foregrad_folder}")
  list(APPEND _foregrad_sources_${_foregrad_folder} "${PROJECT_SOURCE_DIR}/tests/${_foregrad_source}")
endforeach()
list(REMOVE_DUPLICATES _foregrad_test_folders)
if(NOT TARGET foregrad_cli_lib)
  list(REMOVE_ITEM _foregrad_test_folders cli)
endif()

foreach(_foregrad_folder IN LISTS _foregrad_test_folders)
  set(_foregrad_test test_${_foregrad_folder})
  add_executable(${_foregrad_test} ${_foregrad_sources_${_foregrad_folder}})
  target_precompile_headers(${_foregrad_test} REUSE_FROM foregrad_test_support)
  set_target_properties(${_foregrad_test} PROPERTIES
    UNITY_BUILD "${FOREGRAD_UNITY_TESTS}" UNITY_BUILD_BATCH_SIZE 5)
  target_compile_options(${_foregrad_test} PRIVATE ${_foregrad_test_options})
  target_link_libraries(${_foregrad_test} PRIVATE foregrad_test_support GTest::gtest_main)
  target_compile_definitions(${_foregrad_test} PRIVATE
    FOREGRAD_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FOREGRAD_BINARY_DIR="${PROJECT_BINARY_DIR}"
    FOREGRAD_PROJECT_VERSION="${PROJECT_VERSION}")
  set(_foregrad_label unit)
  if(_foregrad_folder IN_LIST FOREGRAD_ROOMS)
    foregrad_link_room(${_foregrad_test} ${_foregrad_folder})
  elseif(_foregrad_folder STREQUAL "cli")
    target_link_libraries(${_foregrad_test} PRIVATE foregrad_cli_lib)
    if(TARGET foregrad_cli)
      add_dependencies(${_foregrad_test} foregrad_cli)
    endif()
  else()
    foregrad_link_room(${_foregrad_test} api)
    set(_foregrad_label "${_foregrad_folder}")
  endif()
  set(_foregrad_labels "${_foregrad_label}" "${_foregrad_folder}")
  list(REMOVE_DUPLICATES _foregrad_labels)
  if(FOREGRAD_SETARCH)
    set_target_properties(${_foregrad_test} PROPERTIES
      CROSSCOMPILING_EMULATOR "${FOREGRAD_SETARCH};-R")
  endif()
  gtest_discover_tests(${_foregrad_test}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${_foregrad_test_timeout})
  # Properties that are lists don't survive gtest_discover_tests: set when ctest reads its files.
  set(_foregrad_properties "${PROJECT_BINARY_DIR}/${_foregrad_test}_properties.cmake")
  file(CONFIGURE OUTPUT "${_foregrad_properties}" CONTENT [=[
if(@_foregrad_test@_TESTS)
  set_tests_properties(${@_foregrad_test@_TESTS} PROPERTIES
    LABELS "@_foregrad_labels@" ENVIRONMENT "@_foregrad_test_environment@")
endif()
]=] @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${_foregrad_properties}")
endforeach()

# Programs that are not C++: each tests/<folder>/*_test.{sh,py} is one test, labelled by its folder.
file(GLOB_RECURSE _foregrad_script_tests CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
  "${PROJECT_SOURCE_DIR}/tests/*_test.sh" "${PROJECT_SOURCE_DIR}/tests/*_test.py")
foreach(_foregrad_source IN LISTS _foregrad_script_tests)
  string(REGEX MATCH "^[^/]+" _foregrad_folder "${_foregrad_source}")
  if(_foregrad_folder STREQUAL "packaging" AND NOT TARGET foregrad_cli_lib)
    continue()  # the outside project compiles a function: it needs `foregrad/compile.h` too
  endif()
  if(_foregrad_source MATCHES "\\.py$")
    set(_foregrad_interpreter python3)
  else()
    set(_foregrad_interpreter bash)
  endif()
  add_test(NAME ${_foregrad_source}
    COMMAND ${_foregrad_interpreter} "${PROJECT_SOURCE_DIR}/tests/${_foregrad_source}")
  set_tests_properties(${_foregrad_source} PROPERTIES LABELS "${_foregrad_folder}" TIMEOUT 600
    ENVIRONMENT "FOREGRAD_SOURCE_DIR=${PROJECT_SOURCE_DIR};FOREGRAD_BINARY_DIR=${PROJECT_BINARY_DIR};FOREGRAD_TORCH_PREFIX=${ForegradTorch_PREFIX};FOREGRAD_CMAKE=${CMAKE_COMMAND};FOREGRAD_CXX=${CMAKE_CXX_COMPILER};FOREGRAD_SANITIZE=${FOREGRAD_SANITIZE}")
endforeach()

# Random programs, eager against compiled. Not under the thread sanitizer, which cannot follow `fork`.
if(TARGET foregrad_cli AND NOT FOREGRAD_SANITIZE MATCHES "thread")
  add_test(NAME fuzz.seed_1 COMMAND foregrad_cli fuzz --seed 1 --seconds 60 --programs 100000)
  set_tests_properties(fuzz.seed_1 PROPERTIES LABELS fuzz TIMEOUT 300
    ENVIRONMENT "${_foregrad_test_environment}")
endif()
