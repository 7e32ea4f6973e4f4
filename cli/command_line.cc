#include "cli/command_line.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <foregrad/version.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "cli/doctor.h"
#include "cli/explain.h"
#include "cli/fuzz/fuzz_command.h"
#include "cli/train_command.h"

namespace foregrad::cli {
namespace {

constexpr const char* kExitCodes = R"(Exit codes:
  0    all is well
  1    compiled differs from eager, a call fell back to eager, or the self-check failed
  2    unknown option or bad value
  3    a data set is missing or damaged
  4    a file or picture cannot be written
  5    a fault of foregrad or of libtorch
  130  interrupted by Ctrl-C)";

ExitCode fail(ExitCode code, const std::string& message) {
  fmt::print(stderr, "foregrad: error: {}\n", message);
  return code;
}

ExitCode parse_and_run(int argument_count, const char* const* arguments) {
  CLI::App application("Foregrad compiles differentiable C++ functions ahead of time.", "foregrad");
  application.set_version_flag("--version", "foregrad " + std::string(foregrad::version()));
  application.require_subcommand(1);
  application.footer(kExitCodes);
  ExitCode result = ExitCode::kOk;
  add_train_command(application, result);
  add_explain_command(application, result);
  add_doctor_command(application, result);
  add_fuzz_command(application, result);
  for (CLI::App* command : application.get_subcommands({})) {
    const std::string own = command->get_footer();
    command->footer(own.empty() ? std::string(kExitCodes) : own + "\n\n" + kExitCodes);
  }
  try {
    application.parse(argument_count, arguments);
  } catch (const CLI::Success& success) {  // --help, --version
    application.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(
        ExitCode::kUsage,
        fmt::format("{}. See `foregrad --help` or `foregrad COMMAND --help`.", error.what()));
  }
  return result;
}

ExitCode check_output(ExitCode code) {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail(ExitCode::kIo,
                fmt::format("cannot write to standard output: {}.", std::strerror(errno)));
  }
  return code;
}

}  // namespace

ExitCode run_command_line(int argument_count, const char* const* arguments) {
  return run_reporting_errors([&] { return parse_and_run(argument_count, arguments); });
}

ExitCode run_reporting_errors(const std::function<ExitCode()>& action) {
  try {
    return check_output(action());
  } catch (const Failure& failure) {
    return fail(failure.code(), failure.what());
  } catch (const std::system_error& error) {  // `fmt::print` throws it
    return fail(ExitCode::kIo,
                fmt::format("cannot write to standard output: {}.", error.code().message()));
  } catch (const c10::Error& error) {
    return fail(ExitCode::kInternal, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::kInternal, "out of memory.");
  } catch (const std::exception& error) {
    return fail(ExitCode::kInternal, error.what());
  }
}

}  // namespace foregrad::cli
