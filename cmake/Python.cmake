# The Python package `foregrad` (python/), for the torch that a Python has installed.
#
#   -DFOREGRAD_PYTHON=ON -DPython3_EXECUTABLE=<venv>/bin/python   makes `<build>/python/foregrad`
#   pip install .                                                 the wheel (pyproject.toml)
#
# The module carries its own copy of the rooms. It names libtorch's libraries without a path: `import
# torch` has loaded them.

find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"
  OUTPUT_VARIABLE _foregrad_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT EXISTS "${_foregrad_python_torch}/lib/libtorch_python.so")
  message(FATAL_ERROR
    "Python: its torch was not found.\n"
    "  where:    ${Python3_EXECUTABLE}\n"
    "  expected: an installed torch ${ForegradTorch_SUPPORTED} with lib/libtorch_python.so\n"
    "  got:      `${_foregrad_python_torch}`\n"
    "  to do:    run `make python`, which makes such a Python, or name one by `-DPython3_EXECUTABLE=`")
endif()
_foregrad_torch_version("${_foregrad_python_torch}" _foregrad_python_torch_version)
if(NOT _foregrad_python_torch_version STREQUAL ForegradTorch_VERSION)
  message(FATAL_ERROR
    "Python: its torch is not the libtorch that Foregrad is built with.\n"
    "  where:    ${_foregrad_python_torch}\n"
    "  expected: ${ForegradTorch_VERSION}, as ${ForegradTorch_PREFIX}\n"
    "  got:      ${_foregrad_python_torch_version}\n"
    "  to do:    install that version, or give this one by `-DTorch_DIR=${_foregrad_python_torch}`")
endif()

file(GLOB _foregrad_python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cc")
file(GLOB _foregrad_python_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/foregrad/*")
set(_foregrad_python_package "${PROJECT_BINARY_DIR}/python/foregrad")

Python3_add_library(foregrad_python MODULE WITH_SOABI ${_foregrad_python_sources})
set_target_properties(foregrad_python PROPERTIES
  OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY "${_foregrad_python_package}"
  SKIP_BUILD_RPATH ON CXX_VISIBILITY_PRESET hidden)
target_compile_definitions(foregrad_python PRIVATE TORCH_EXTENSION_NAME=_C)
target_link_libraries(foregrad_python PRIVATE "${_foregrad_python_torch}/lib/libtorch_python.so")
foregrad_link_room(foregrad_python api)

# The package as it would be installed, but that its files are those of the source.
foreach(_foregrad_file IN LISTS _foregrad_python_files)
  get_filename_component(_foregrad_name "${_foregrad_file}" NAME)
  if(NOT _foregrad_name STREQUAL "__pycache__")
    file(MAKE_DIRECTORY "${_foregrad_python_package}")
    file(CREATE_LINK "${_foregrad_file}" "${_foregrad_python_package}/${_foregrad_name}" SYMBOLIC)
  endif()
endforeach()

if(SKBUILD)
  install(TARGETS foregrad_python LIBRARY DESTINATION foregrad)
endif()
