// Running another program without a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foregrad::cli {

/// Runs a program found on PATH, feeds it `input` and returns what it wrote to its standard output.
/// Throws a `Failure` of kind `kIo` if it is not there (the message says to install `package`),
/// cannot be started, is killed, or ends with another code than 0; then with the first lines of
/// what it wrote to its standard error.
std::string run_program(const std::vector<std::string>& arguments, std::string_view input,
                        const std::string& package);

/// Throws as `run_program` does unless PATH has the program.
void check_program_exists(const std::string& program, const std::string& package);

}  // namespace foregrad::cli
