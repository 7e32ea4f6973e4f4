# `make install`: the library, the public headers, the tool, and a CMake package for
# `find_package(Foregrad)`.

include(CMakePackageConfigHelpers)

set(_foregrad_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Foregrad")

# Where the installed library and tool find libtorch when the program that uses them does not say.
set_target_properties(foregrad PROPERTIES INSTALL_RPATH "$ORIGIN;${_foregrad_torch_lib}")
if(TARGET foregrad_cli)
  set_target_properties(foregrad_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${_foregrad_torch_lib}")
  install(TARGETS foregrad_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

install(TARGETS foregrad EXPORT ForegradTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT ForegradTargets NAMESPACE Foregrad:: DESTINATION "${_foregrad_package_dir}")
if(EXISTS "${PROJECT_SOURCE_DIR}/include/foregrad")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/foregrad" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/graph" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/foregrad/ir"
    FILES_MATCHING PATTERN "*.h")
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/ForegradConfig.cmake.in" "${PROJECT_BINARY_DIR}/ForegradConfig.cmake"
  INSTALL_DESTINATION "${_foregrad_package_dir}")
# Before 1.0 a minor version may break its users.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ForegradConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/ForegradConfig.cmake" "${PROJECT_BINARY_DIR}/ForegradConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindForegradTorch.cmake"
  DESTINATION "${_foregrad_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
