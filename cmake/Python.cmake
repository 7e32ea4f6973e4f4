# The Python package `foregrad` (python/), for the torch that a Python has installed.
#
#   -DFOREGRAD_PYTHON=ON -DPython3_EXECUTABLE=<environment>/bin/python   makes `<build>/python/foregrad`
#   pip install .                                                        a wheel of it (pyproject.toml)
#
# The module carries its own copy of the rooms. It names libtorch's libraries without a path: `import
# torch` has loaded them.

_foregrad_torch_version("${_foregrad_python_torch}" _foregrad_python_torch_version)
if(NOT _foregrad_python_torch_version STREQUAL ForegradTorch_VERSION)
  message(FATAL_ERROR
    "Python: its torch is not the libtorch that Foregrad is built with.\n"
    "  where:    ${_foregrad_python_torch}\n"
    "  expected: ${ForegradTorch_VERSION}, as ${ForegradTorch_PREFIX}\n"
    "  got:      ${_foregrad_python_torch_version}\n"
    "  to do:    install that version, or give this one by `-DTorch_DIR=${_foregrad_python_torch}`")
endif()

set(_foregrad_python_package "${PROJECT_BINARY_DIR}/python/foregrad")
file(GLOB _foregrad_python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cc")
file(GLOB _foregrad_python_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/foregrad/*.py*" "${PROJECT_SOURCE_DIR}/python/foregrad/py.typed")

Python3_add_library(foregrad_python MODULE WITH_SOABI ${_foregrad_python_sources})
set_target_properties(foregrad_python PROPERTIES
  OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY "${_foregrad_python_package}"
  SKIP_BUILD_RPATH ON CXX_VISIBILITY_PRESET hidden)
target_compile_definitions(foregrad_python PRIVATE TORCH_EXTENSION_NAME=_C)
target_link_libraries(foregrad_python PRIVATE "${_foregrad_python_torch}/lib/libtorch_python.so")
foregrad_link_room(foregrad_python api)

if(SKBUILD)
  install(TARGETS foregrad_python LIBRARY DESTINATION foregrad)
  return()
endif()

# The package as a wheel would install it, but that its files are those of the source.
file(REMOVE_RECURSE "${_foregrad_python_package}/__pycache__")
file(MAKE_DIRECTORY "${_foregrad_python_package}")
foreach(_foregrad_file IN LISTS _foregrad_python_files)
  get_filename_component(_foregrad_name "${_foregrad_file}" NAME)
  file(CREATE_LINK "${_foregrad_file}" "${_foregrad_python_package}/${_foregrad_name}" SYMBOLIC)
endforeach()
set(_foregrad_dist_info "${PROJECT_BINARY_DIR}/python/foregrad-${PROJECT_VERSION}.dist-info")
file(WRITE "${_foregrad_dist_info}/METADATA" "Metadata-Version: 2.1\nName: foregrad\nVersion: ${PROJECT_VERSION}\n")
file(WRITE "${_foregrad_dist_info}/entry_points.txt" "[torch_dynamo_backends]\nforegrad = foregrad._dynamo:backend\n")
