// Files that are either whole or not there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace foregrad::cli {

/// Writes a file under a temporary name beside `path`, then renames it: nobody ever sees half a
/// file, and the one that was there stays when writing fails. Throws a `Failure` of kind `kIo` that
/// says why: full disk, unwritable folder, ….
void write_file(const std::filesystem::path& path, std::string_view contents);

/// Makes a folder and its parents if need be and writes and removes a file in it, so that hours of
/// work are not begun whose result cannot be kept. Throws as `write_file` does.
void check_folder_is_writable(const std::filesystem::path& folder);

/// Writes all of `contents` to a file descriptor; `path` is for the message of the `Failure`.
void write_all(int descriptor, std::string_view contents, const std::filesystem::path& path);

}  // namespace foregrad::cli
