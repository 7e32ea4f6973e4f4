# The command line tool, the benchmarks and the examples. A folder without sources yet is skipped.

# The tool stands on the public entry point, `foregrad/compile.h`, and is skipped while that is not there.
set(_foregrad_cli_sources "")
set(_foregrad_cli_main "")
if(EXISTS "${PROJECT_SOURCE_DIR}/include/foregrad/compile.h")
  file(GLOB_RECURSE _foregrad_cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.cc")
  set(_foregrad_cli_main "${PROJECT_SOURCE_DIR}/cli/main.cc")
  list(REMOVE_ITEM _foregrad_cli_sources "${_foregrad_cli_main}")
endif()

# All of the tool but main(), so that tests can link it. It knows the public headers only; whoever
# links it chooses the shared library (the tool) or the rooms (tests).
if(_foregrad_cli_sources)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(ZLIB REQUIRED)
  add_library(foregrad_cli_lib STATIC ${_foregrad_cli_sources})
  target_include_directories(foregrad_cli_lib PUBLIC "${PROJECT_SOURCE_DIR}/cli" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(foregrad_cli_lib PUBLIC
    foregrad_options foregrad_logging Foregrad::foregrad CLI11::CLI11 nlohmann_json::nlohmann_json
    ZLIB::ZLIB Threads::Threads)
  target_precompile_headers(foregrad_cli_lib PRIVATE
    <ATen/core/Tensor.h> <fmt/format.h> <fmt/ranges.h> <algorithm> <functional> <string> <vector>)
endif()

if(_foregrad_cli_main)
  add_executable(foregrad_cli "${_foregrad_cli_main}")
  set_target_properties(foregrad_cli PROPERTIES OUTPUT_NAME foregrad)
  target_link_libraries(foregrad_cli PRIVATE foregrad_cli_lib Foregrad::foregrad)
endif()

file(GLOB _foregrad_bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cc")
if(_foregrad_bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(foregrad_bench ${_foregrad_bench_sources})
  target_link_libraries(foregrad_bench PRIVATE
    foregrad_options foregrad_logging Foregrad::foregrad benchmark::benchmark Threads::Threads)
endif()

# Each examples/x.cc is a program of its own: build/<preset>/bin/examples/x.
file(GLOB _foregrad_examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cc")
foreach(_foregrad_example IN LISTS _foregrad_examples)
  get_filename_component(_foregrad_name "${_foregrad_example}" NAME_WE)
  add_executable(example_${_foregrad_name} "${_foregrad_example}")
  set_target_properties(example_${_foregrad_name} PROPERTIES
    OUTPUT_NAME ${_foregrad_name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/examples")
  target_link_libraries(example_${_foregrad_name} PRIVATE foregrad_options Foregrad::foregrad)
endforeach()
