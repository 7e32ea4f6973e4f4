#include "cli/pictures.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>

#include "expect_failure.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::contents_of;
using testing::expect_failure;
using ::testing::HasSubstr;
using testing::put;

constexpr const char* kDot = "digraph g { a -> b }";

/// Changes PATH while it lives.
class Path {
 public:
  explicit Path(const std::string& value) { setenv("PATH", value.c_str(), 1); }
  ~Path() { setenv("PATH", previous_.c_str(), 1); }

 private:
  std::string previous_ = std::getenv("PATH");
};

class PicturesTest : public ::testing::Test {
 protected:
  static LossCurves curves() {
    return {.title = "it's a title", .eager = {2.3, 1.1, 0.7}, .compiled = {2.3, 1.1, 0.7}};
  }

  /// Puts a shell script in a folder of programs.
  void put_program(const std::string& name, const std::string& script) {
    std::filesystem::create_directory(folder_ / "bin");
    put(folder_ / "bin" / name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(PicturesTest, DrawsLosses) {
  EXPECT_EQ(draw_losses(curves(), folder_ / "loss"),
            (std::vector<std::filesystem::path>{folder_ / "loss.svg", folder_ / "loss.png"}));
  const std::string svg = contents_of(folder_ / "loss.svg");
  for (const char* text : {"it's a title", ">eager<", ">compiled<", ">step<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_TRUE(contents_of(folder_ / "loss.png").starts_with("\x89PNG"));
  EXPECT_EQ(folder_.entries(), 2);
}

TEST_F(PicturesTest, DrawsOneCurveAndNumbersThatAreNotFinite) {
  LossCurves one = curves();
  one.eager.clear();
  one.compiled = {1, NAN, std::numeric_limits<double>::infinity(), 2};
  draw_losses(one, folder_ / "loss");
  EXPECT_THAT(contents_of(folder_ / "loss.svg"), ::testing::Not(HasSubstr(">eager<")));
}

TEST_F(PicturesTest, DrawsNothingButNumbersThatAreNotFinite) {
  draw_losses({.title = "t", .eager = {}, .compiled = {NAN, NAN}}, folder_ / "loss");
  EXPECT_EQ(folder_.entries(), 2);
}

TEST_F(PicturesTest, DrawsGraphs) {
  draw_graph(kDot, folder_ / "graph");
  EXPECT_THAT(contents_of(folder_ / "graph.svg"), HasSubstr("</svg>"));
  EXPECT_TRUE(contents_of(folder_ / "graph.png").starts_with("\x89PNG"));
}

TEST_F(PicturesTest, BadGraph) {
  expect_failure(
      ExitCode::kIo, [&] { draw_graph("digraph {", folder_ / "graph"); }, "`dot` ended with code 1",
      "syntax error");
  EXPECT_EQ(folder_.entries(), 0);
}

TEST_F(PicturesTest, MissingTools) {
  const Path nothing(folder_.path().string());
  expect_failure(
      ExitCode::kIo, [&] { draw_losses(curves(), folder_ / "loss"); }, "`gnuplot` is not on PATH",
      "Install the package `gnuplot-nox`");
  expect_failure(
      ExitCode::kIo, [&] { draw_graph(kDot, folder_ / "graph"); }, "`dot` is not on PATH",
      "Install the package `graphviz`");
  expect_failure(
      ExitCode::kIo, [&] { check_can_draw(folder_.path()); }, "`gnuplot` is not on PATH");
}

TEST_F(PicturesTest, HalfAPictureIsNotKept) {
  put_program("dot", "echo '<?xml and no end'");
  const Path fake((folder_ / "bin").string());
  expect_failure(
      ExitCode::kIo, [&] { draw_graph(kDot, folder_ / "graph"); }, "`dot`",
      "expected a whole picture of kind svg");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "graph.svg"));
}

TEST_F(PicturesTest, EmptyPictureIsNotKept) {
  put_program("gnuplot", "exit 0");
  const Path fake((folder_ / "bin").string());
  expect_failure(
      ExitCode::kIo, [&] { draw_losses(curves(), folder_ / "loss"); },
      "got 0 bytes of something else");
}

TEST_F(PicturesTest, UnwritableFolder) {
  expect_failure(
      ExitCode::kIo, [&] { draw_graph(kDot, folder_ / "no/graph"); }, "cannot write `",
      "no/graph.svg");
  put(folder_ / "file", "");
  expect_failure(
      ExitCode::kIo, [&] { check_can_draw(folder_ / "file/pictures"); }, "cannot write `",
      "Not a directory");
}

TEST_F(PicturesTest, SpaceRunsOut) {
  // The limit must not hit the drawing programs' own files: it is set for what is written here
  // only, so draw with a program that writes nothing but its output.
  put_program("dot", "printf '<?xml%2000s</svg>' x");
  const std::string path = (folder_ / "bin").string() + ":" + std::getenv("PATH");
  const Path fake(path);
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  expect_failure(
      ExitCode::kIo, [&] { draw_graph(kDot, folder_ / "graph"); }, "cannot write `", "graph.svg",
      "File too large", "Free some space");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, previous_handler);
  EXPECT_EQ(folder_.entries(), 1);  // bin
}

}  // namespace
}  // namespace foregrad::cli
