#include "cli/command_line.h"

int main(int argument_count, char** arguments) {
  return static_cast<int>(foregrad::cli::run_command_line(argument_count, arguments));
}
