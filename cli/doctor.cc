#include "cli/doctor.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <foregrad/self_check.h>
#include <foregrad/version.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace foregrad::cli {
namespace {

constexpr std::array<std::string_view, 13> kFeatures{
    "sse4_2",      "avx",         "fma",         "f16c",     "avx2",     "avx512f", "avx512bw",
    "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "avx_vnni"};

#if defined(__clang__)
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

/// Returns what follows `key` and a colon on the first line that begins with it.
std::string_view cpuinfo_line(std::string_view cpuinfo, std::string_view key) {
  const size_t start = cpuinfo.find(key);
  if (start == std::string_view::npos) {
    return {};
  }
  const std::string_view line = cpuinfo.substr(start, cpuinfo.substr(start).find('\n'));
  const size_t colon = line.find(": ");
  return colon == std::string_view::npos ? std::string_view() : line.substr(colon + 2);
}

std::string read_cpuinfo() {
  std::ifstream file("/proc/cpuinfo");
  return {std::istreambuf_iterator<char>(file), {}};
}

void print_row(const char* name, std::string_view value) { fmt::print("{:<20}{}\n", name, value); }

void print_environment(const char* name) {
  const char* value = std::getenv(name);
  print_row(name, value != nullptr ? value : "not set");
}

ExitCode run() {
  const std::string cpuinfo = read_cpuinfo();
  const SelfCheck check = self_check();
  print_row("foregrad", foregrad::version());
  print_row("libtorch", check.libtorch_version);
  print_row("built against", TORCH_VERSION);
  print_row("built with", kCompiler);
  print_row("CPU", cpu_name(cpuinfo));
  print_row("CPU features", fmt::format("{}", fmt::join(cpu_features(cpuinfo), " ")));
  print_row("libtorch uses", at::get_cpu_capability());
  print_row("processors", fmt::format("{}", std::thread::hardware_concurrency()));
  print_row("operator threads", fmt::format("{}", at::get_num_threads()));
  print_environment("OMP_NUM_THREADS");
  print_environment("OMP_WAIT_POLICY");
  print_environment("FOREGRAD_LOG");
  return print_self_check(check);
}

}  // namespace

std::vector<std::string> cpu_features(std::string_view cpuinfo) {
  std::istringstream flags{std::string(cpuinfo_line(cpuinfo, "flags"))};
  const std::vector<std::string> all{std::istream_iterator<std::string>(flags), {}};
  std::vector<std::string> result;
  for (const std::string_view feature : kFeatures) {
    if (std::find(all.begin(), all.end(), feature) != all.end()) {
      result.emplace_back(feature);
    }
  }
  return result;
}

std::string cpu_name(std::string_view cpuinfo) {
  const std::string_view name = cpuinfo_line(cpuinfo, "model name");
  return name.empty() ? "unknown" : std::string(name);
}

ExitCode print_self_check(const SelfCheck& check) {
  print_row("trace key", check.trace_key);
  print_row("self-check", check.ok ? "passed" : "FAILED");
  for (const std::string& line : check.lines) {
    fmt::print("  {}\n", line);
  }
  return check.ok ? ExitCode::kOk : ExitCode::kMismatch;
}

void add_doctor_command(CLI::App& application, ExitCode& result) {
  CLI::App* command = application.add_subcommand(
      "doctor", "Print versions, CPU features, thread counts and a self-check");
  command->callback([&result] { result = run(); });
}

}  // namespace foregrad::cli
