# The product: the shared library `foregrad`, target `Foregrad::foregrad`.

get_target_property(_foregrad_api_type foregrad_api TYPE)
if(_foregrad_api_type STREQUAL "STATIC_LIBRARY")
  target_include_directories(foregrad_api PUBLIC "${PROJECT_SOURCE_DIR}/include")
else()
  target_include_directories(foregrad_api INTERFACE "${PROJECT_SOURCE_DIR}/include")
endif()

# CMake wants a source of the library's own; the code comes from the rooms.
set(_foregrad_anchor "${PROJECT_BINARY_DIR}/foregrad.cc")
file(CONFIGURE OUTPUT "${_foregrad_anchor}" CONTENT "// The code is in the rooms (src/).\n")

add_library(foregrad SHARED "${_foregrad_anchor}")
add_library(Foregrad::foregrad ALIAS foregrad)
set_target_properties(foregrad PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(foregrad PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  # Graphs, for authors of backends (foregrad/aot.h): `#include "graph/graph.h"`.
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/foregrad/ir>)
target_compile_features(foregrad PUBLIC cxx_std_20)
target_link_libraries(foregrad PUBLIC Foregrad::Torch PRIVATE foregrad_logging)

get_target_property(_foregrad_rooms foregrad_api FOREGRAD_CLOSURE)
if(_foregrad_rooms)
  target_link_libraries(foregrad PRIVATE ${_foregrad_rooms})
  list(JOIN _foregrad_rooms "," _foregrad_names)
  set_target_properties(foregrad PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${_foregrad_names}")
endif()
