# One static library for each room under src/, and the shared library of all of them.
# A room's sources are what lies in its folder: nobody edits CMake to add a file. A room whose folder
# holds no source yet is an interface library, so that the others build without it.
# scripts/check_rooms.py holds the includes against the rooms' table.

set(FOREGRAD_ROOMS "")

function(foregrad_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  list(TRANSFORM arg_DEPENDS PREPEND foregrad_)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${room}/*.cc")
  if(sources)
    add_library(foregrad_${room} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(foregrad_${room} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(foregrad_${room} ${scope} "${PROJECT_SOURCE_DIR}/src")
  # What most files of a room read costs seconds each: worth a precompiled header where there are many.
  # `make lint` compiles without it, so that each file still includes what it uses.
  list(LENGTH sources count)
  if(count GREATER 8)
    target_precompile_headers(foregrad_${room} PRIVATE
      <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <fmt/format.h> <algorithm> <functional> <map> <vector>)
  endif()
  # foregrad_logging first: the order of include folders (Logging.cmake).
  target_link_libraries(foregrad_${room} ${scope}
    foregrad_options foregrad_logging Foregrad::Torch ${arg_DEPENDS})

  # All libraries with objects that a program with this room holds, the room's own included.
  set(closure "")
  foreach(dependency IN LISTS arg_DEPENDS)
    get_target_property(theirs ${dependency} FOREGRAD_CLOSURE)
    if(theirs)
      list(APPEND closure ${theirs})
    endif()
  endforeach()
  if(sources)
    list(APPEND closure foregrad_${room})
  endif()
  list(REMOVE_DUPLICATES closure)
  set_target_properties(foregrad_${room} PROPERTIES FOREGRAD_CLOSURE "${closure}")
  list(APPEND FOREGRAD_ROOMS ${room})
  set(FOREGRAD_ROOMS "${FOREGRAD_ROOMS}" PARENT_SCOPE)
endfunction()

# Links a room and what it stands on, every object of it: registrations that run when a program
# starts must not be dropped because nothing names them.
function(foregrad_link_room target room)
  get_target_property(closure foregrad_${room} FOREGRAD_CLOSURE)
  if(closure)
    list(JOIN closure "," names)
    set_target_properties(${target} PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${names}")
  endif()
  target_link_libraries(${target} PRIVATE foregrad_${room} ${closure})
endfunction()
