// The drawing programs write to a pipe, not to a file: gnuplot says nothing when a disk is full.
// What they draw is written here, whole or not at all.
#include "cli/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/atomic_file.h"
#include "cli/failure.h"
#include "cli/subprocess.h"

namespace foregrad::cli {
namespace {

constexpr const char* kGnuplotPackage = "gnuplot-nox";
constexpr const char* kDotPackage = "graphviz";

struct Format {
  const char* extension;
  const char* gnuplot_terminal;
  std::string_view start;  // of every file of the format, as the drawing programs write it
  std::string_view end;
};

constexpr std::array<Format, 2> kFormats{
    Format{"svg", "svg size 1000,600 dynamic enhanced font 'sans-serif,14' background '#ffffff'",
           "<?xml", "</svg>"},
    Format{"png", "pngcairo size 1000,600 enhanced font 'sans,12' background '#ffffff'", "\x89PNG",
           std::string_view("IEND\xae\x42\x60\x82", 8)}};

void check_is_whole(std::string_view picture, const Format& format, const char* program) {
  const std::string_view tail =
      picture.substr(picture.size() - std::min<size_t>(picture.size(), 16));
  if (!picture.starts_with(format.start) || tail.find(format.end) == std::string_view::npos) {
    throw Failure(
        ExitCode::kIo,
        fmt::format("`{}`: expected a whole picture of kind {}, got {} bytes of something else.",
                    program, format.extension, picture.size()));
  }
}

/// Tells whether a logarithmic scale has a place for the loss.
bool is_drawable(double loss) { return std::isfinite(loss) && loss > 0; }

void append_block(std::string& script, const char* name, const std::vector<double>& losses) {
  script += fmt::format("${} << EOD\n", name);
  for (size_t i = 0; i < losses.size(); ++i) {
    script += is_drawable(losses[i]) ? fmt::format("{} {:.9g}\n", i + 1, losses[i])
                                     : fmt::format("{} NaN\n", i + 1);
  }
  script += "EOD\n";
}

std::string quoted(std::string text) {
  for (size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 2) {
    text.insert(i, 1, '\'');
  }
  return "'" + text + "'";
}

/// Returns the range that holds all losses, with a margin; gnuplot finds none where there is
/// nothing to show.
std::string y_range(const LossCurves& curves) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const auto* losses : {&curves.eager, &curves.compiled}) {
    for (const double loss : *losses) {
      if (is_drawable(loss)) {
        low = std::min(low, loss);
        high = std::max(high, loss);
      }
    }
  }
  return high == 0 ? "set yrange [0.1:10]\n"
                   : fmt::format("set yrange [{:.9g}:{:.9g}]\n", low / 1.1, high * 1.1);
}

std::string loss_script(const LossCurves& curves, const Format& format) {
  std::string script = fmt::format("set encoding utf8\nset terminal {}\n", format.gnuplot_terminal);
  script += fmt::format("set title {} noenhanced font ',16'\n", quoted(curves.title));
  script +=
      "set xlabel 'step'\nset ylabel 'loss (mean cross entropy, log scale)'\nset logscale y\n"
      "set format y '%g'\nset ytics add (0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5)\n"
      "set border 3 lc rgb '#555555'\nset tics nomirror out\nset grid lc rgb '#dddddd' lt 1\n"
      "set key top right reverse Left samplen 3\n"
      "set autoscale xfix\n";
  script += y_range(curves);
  std::string plots;
  if (!curves.eager.empty()) {
    append_block(script, "eager", curves.eager);
    plots += "$eager using 1:2 with lines lw 6 lc rgb '#f7bf94' title 'eager'";
  }
  if (!curves.compiled.empty()) {
    append_block(script, "compiled", curves.compiled);
    plots += plots.empty() ? "" : ", ";
    plots += "$compiled using 1:2 with lines lw 0.8 lc rgb '#1f3864' title 'compiled'";
  }
  return script + "plot " + plots + "\n";
}

std::filesystem::path save(const std::string& picture, const Format& format, const char* program,
                           const std::filesystem::path& stem) {
  check_is_whole(picture, format, program);
  std::filesystem::path path = stem.string() + "." + format.extension;
  write_file(path, picture);
  return path;
}

}  // namespace

void check_can_draw(const std::filesystem::path& folder) {
  check_program_exists("gnuplot", kGnuplotPackage);
  check_program_exists("dot", kDotPackage);
  check_folder_is_writable(folder);
}

std::vector<std::filesystem::path> draw_losses(const LossCurves& curves,
                                               const std::filesystem::path& stem) {
  std::vector<std::filesystem::path> paths;
  for (const Format& format : kFormats) {
    paths.push_back(save(run_program({"gnuplot"}, loss_script(curves, format), kGnuplotPackage),
                         format, "gnuplot", stem));
  }
  return paths;
}

std::vector<std::filesystem::path> draw_graph(std::string_view dot_source,
                                              const std::filesystem::path& stem) {
  std::vector<std::filesystem::path> paths;
  for (const Format& format : kFormats) {
    const std::string flag = fmt::format("-T{}", format.extension);
    paths.push_back(save(run_program({"dot", flag}, dot_source, kDotPackage), format, "dot", stem));
  }
  return paths;
}

}  // namespace foregrad::cli
