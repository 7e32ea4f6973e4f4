# `foregrad_logging`: spdlog with the distribution's fmt.
#
# libtorch ships headers of a newer fmt in its include folder, which would win over the distribution's
# because `-isystem` folders come before /usr/include. spdlog is compiled against the distribution's,
# so that one is put first, by a folder that holds nothing but a link to it. The two live in different
# inline namespaces and do not clash at link time.

find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_path(FOREGRAD_FMT_INCLUDE fmt/core.h PATHS /usr/include NO_DEFAULT_PATH)
find_path(FOREGRAD_FMT_INCLUDE fmt/core.h REQUIRED)

set(_foregrad_fmt_first "${PROJECT_BINARY_DIR}/fmt-first")
file(MAKE_DIRECTORY "${_foregrad_fmt_first}")
file(CREATE_LINK "${FOREGRAD_FMT_INCLUDE}/fmt" "${_foregrad_fmt_first}/fmt" SYMBOLIC)

add_library(foregrad_logging INTERFACE)
target_include_directories(foregrad_logging SYSTEM INTERFACE "${_foregrad_fmt_first}")
target_link_libraries(foregrad_logging INTERFACE spdlog::spdlog)
