# Finds libtorch for the CPU and makes the imported target `Foregrad::Torch`.
#
# Problem. The `torch` wheel carries a TorchConfig.cmake that demands the CUDA toolkit, although a
# program that only uses the CPU needs two of its libraries, libtorch_cpu and libc10, and its headers.
# Idea. Describe those two libraries here and never run TorchConfig. The CUDA libraries that
# libtorch_cpu names (libcudart, libcupti) are needed to load only; libtorch_cpu's own DT_RPATH finds
# them beside it.
#
# Where it looks, in this order; the first that holds a libtorch is taken:
#   1. `Torch_DIR`, CMake variable or environment: `<prefix>/share/cmake/Torch`, or `<prefix>` itself.
#      Given and empty of libtorch is an error.
#   2. `CMAKE_PREFIX_PATH`, CMake variable or environment: each entry, and `torch/` below each.
#   3. `FOREGRAD_TORCH_PREFIX`, which an installed Foregrad records.
#   4. What scripts/setup.sh unpacks: `${FOREGRAD_CACHE:-${XDG_CACHE_HOME:-~/.cache}/foregrad}`.
#
# Sets `ForegradTorch_FOUND`, `ForegradTorch_PREFIX`, `ForegradTorch_VERSION`.

set(ForegradTorch_SUPPORTED 2.15)

function(_foregrad_torch_library_dir prefix out)
  set(${out} "" PARENT_SCOPE)
  foreach(dir IN ITEMS lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
    if(EXISTS "${prefix}/${dir}/libtorch_cpu.so" AND EXISTS "${prefix}/${dir}/libc10.so")
      set(${out} "${prefix}/${dir}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_foregrad_torch_first_prefix candidates out)
  set(${out} "" PARENT_SCOPE)
  foreach(prefix IN LISTS candidates)
    _foregrad_torch_library_dir("${prefix}" library_dir)
    if(library_dir AND EXISTS "${prefix}/include/ATen/ATen.h")
      get_filename_component(prefix "${prefix}" ABSOLUTE)
      set(${out} "${prefix}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_foregrad_torch_version prefix out)
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    set(path "${prefix}/include/${header}")
    if(EXISTS "${path}")
      file(READ "${path}" text)
      if(text MATCHES "TORCH_VERSION_MAJOR ([0-9]+)")
        set(version "${CMAKE_MATCH_1}")
        foreach(part IN ITEMS MINOR PATCH)
          string(REGEX MATCH "TORCH_VERSION_${part} ([0-9]+)" unused "${text}")
          string(APPEND version ".${CMAKE_MATCH_1}")
        endforeach()
        set(${out} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  set(${out} "unknown" PARENT_SCOPE)
endfunction()

# The folder scripts/setup.sh unpacks into.
if(DEFINED ENV{FOREGRAD_CACHE})
  set(_foregrad_cache "$ENV{FOREGRAD_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(_foregrad_cache "$ENV{XDG_CACHE_HOME}/foregrad")
else()
  set(_foregrad_cache "$ENV{HOME}/.cache/foregrad")
endif()

set(_foregrad_named "")
if(Torch_DIR)
  set(_foregrad_named "${Torch_DIR}")
elseif(DEFINED ENV{Torch_DIR})
  set(_foregrad_named "$ENV{Torch_DIR}")
endif()

set(ForegradTorch_PREFIX "")
if(_foregrad_named)
  _foregrad_torch_first_prefix("${_foregrad_named}/../../..;${_foregrad_named}" ForegradTorch_PREFIX)
  if(NOT ForegradTorch_PREFIX)
    message(FATAL_ERROR
      "libtorch: `Torch_DIR` names no libtorch.\n"
      "  where:    ${_foregrad_named}\n"
      "  expected: lib/libtorch_cpu.so, lib/libc10.so and include/ATen/ATen.h there, or three folders up\n"
      "  got:      not all of them\n"
      "  to do:    point `Torch_DIR` at `<libtorch>/share/cmake/Torch`, or unset it to use the pinned "
      "libtorch (`make setup`)")
  endif()
else()
  set(_foregrad_candidates "")
  string(REPLACE ":" ";" _foregrad_env_prefixes "$ENV{CMAKE_PREFIX_PATH}")
  foreach(_foregrad_entry IN LISTS CMAKE_PREFIX_PATH _foregrad_env_prefixes)
    list(APPEND _foregrad_candidates "${_foregrad_entry}" "${_foregrad_entry}/torch")
  endforeach()
  file(GLOB _foregrad_unpacked "${_foregrad_cache}/torch-${ForegradTorch_SUPPORTED}.*/torch")
  if(NOT _foregrad_unpacked)
    set(_foregrad_unpacked "${_foregrad_cache}/torch-${ForegradTorch_SUPPORTED}.0/torch")
  endif()
  list(APPEND _foregrad_candidates
    "${FOREGRAD_TORCH_PREFIX}" ${_foregrad_unpacked})
  _foregrad_torch_first_prefix("${_foregrad_candidates}" ForegradTorch_PREFIX)
  if(NOT ForegradTorch_PREFIX)
    list(REMOVE_ITEM _foregrad_candidates "")
    list(JOIN _foregrad_candidates "\n              " _foregrad_searched)
    message(FATAL_ERROR
      "libtorch: none found.\n"
      "  where:    ${_foregrad_searched}\n"
      "  expected: lib/libtorch_cpu.so, lib/libc10.so and include/ATen/ATen.h in one of them\n"
      "  got:      none\n"
      "  to do:    run `make setup`, or give your own libtorch ${ForegradTorch_SUPPORTED} by "
      "`-DCMAKE_PREFIX_PATH=<libtorch>`")
  endif()
endif()

_foregrad_torch_library_dir("${ForegradTorch_PREFIX}" _foregrad_torch_lib)
_foregrad_torch_version("${ForegradTorch_PREFIX}" ForegradTorch_VERSION)

if(NOT ForegradTorch_VERSION MATCHES "^${ForegradTorch_SUPPORTED}\\.")
  message(FATAL_ERROR
    "libtorch: this version is not supported.\n"
    "  where:    ${ForegradTorch_PREFIX}\n"
    "  expected: ${ForegradTorch_SUPPORTED}.x (dispatch keys and functionalization change between versions)\n"
    "  got:      ${ForegradTorch_VERSION}\n"
    "  to do:    give a libtorch ${ForegradTorch_SUPPORTED} by `-DCMAKE_PREFIX_PATH=`, or unset "
    "`CMAKE_PREFIX_PATH` and `Torch_DIR` and run `make setup`")
endif()

if(NOT TARGET Foregrad::Torch)
  foreach(_foregrad_name IN ITEMS torch_cpu c10)
    add_library(Foregrad::${_foregrad_name} UNKNOWN IMPORTED)
    set_target_properties(Foregrad::${_foregrad_name} PROPERTIES
      IMPORTED_LOCATION "${_foregrad_torch_lib}/lib${_foregrad_name}.so")
  endforeach()

  add_library(Foregrad::Torch INTERFACE IMPORTED)
  target_include_directories(Foregrad::Torch SYSTEM INTERFACE
    "${ForegradTorch_PREFIX}/include" "${ForegradTorch_PREFIX}/include/torch/csrc/api/include")
  target_compile_features(Foregrad::Torch INTERFACE cxx_std_20)
  target_compile_definitions(Foregrad::Torch INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
  target_link_libraries(Foregrad::Torch INTERFACE Foregrad::torch_cpu Foregrad::c10)

  # `at::parallel_for` is a template: without -fopenmp it is serial in every program that includes it.
  # GCC only: Clang's OpenMP brings a second runtime beside the libgomp that libtorch_cpu has loaded.
  # Linked is the libgomp that libtorch_cpu loads (both have the soname libgomp.so.1, so that the
  # loader takes one, whichever comes first).
  target_compile_options(Foregrad::Torch INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fopenmp>)
  if(EXISTS "${_foregrad_torch_lib}/libgomp.so.1")
    add_library(Foregrad::gomp UNKNOWN IMPORTED)
    set_target_properties(Foregrad::gomp PROPERTIES
      IMPORTED_LOCATION "${_foregrad_torch_lib}/libgomp.so.1")
    target_link_libraries(Foregrad::Torch INTERFACE Foregrad::gomp)
  else()
    target_link_options(Foregrad::Torch INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fopenmp>)
  endif()
endif()

set(ForegradTorch_FOUND TRUE)
if(NOT ForegradTorch_FIND_QUIETLY)
  message(STATUS "libtorch ${ForegradTorch_VERSION}: ${ForegradTorch_PREFIX}")
endif()
