// Pictures of training and of graphs, drawn by gnuplot and Graphviz, as SVG and PNG.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foregrad::cli {

/// Holds what the loss picture shows; a curve that is empty is left out.
struct LossCurves {
  std::string title;
  std::vector<double> eager;
  std::vector<double> compiled;
};

/// Checks that the drawing programs are installed and that the folder can be written to, making it
/// if need be.
void check_can_draw(const std::filesystem::path& folder);

/// Draws both curves on a logarithmic scale into `<stem>.svg` and `<stem>.png`: eager wide and
/// light, compiled thin and dark on top of it. Returns the paths. Throws a `Failure` of kind `kIo`.
std::vector<std::filesystem::path> draw_losses(const LossCurves& curves,
                                               const std::filesystem::path& stem);

/// Draws a graph in Graphviz' language into `<stem>.svg` and `<stem>.png`. Returns the paths.
/// Throws a `Failure` of kind `kIo`.
std::vector<std::filesystem::path> draw_graph(std::string_view dot_source,
                                              const std::filesystem::path& stem);

}  // namespace foregrad::cli
