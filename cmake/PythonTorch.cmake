# The Python that the package is made for, and the torch that it has installed: `_foregrad_python_torch`.
# A wheel is built against that one; it need not be told where libtorch is.

find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c
    "import importlib.util as util; print(*util.find_spec('torch').submodule_search_locations)"
  OUTPUT_VARIABLE _foregrad_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT EXISTS "${_foregrad_python_torch}/lib/libtorch_python.so")
  message(FATAL_ERROR
    "Python: it has no torch.\n"
    "  where:    ${Python3_EXECUTABLE}\n"
    "  expected: an installed torch, with lib/libtorch_python.so\n"
    "  got:      `${_foregrad_python_torch}`\n"
    "  to do:    run `make python`, which makes such a Python, or name one by `-DPython3_EXECUTABLE=`")
endif()
if(SKBUILD AND NOT Torch_DIR AND NOT DEFINED ENV{Torch_DIR})
  set(Torch_DIR "${_foregrad_python_torch}")
endif()
