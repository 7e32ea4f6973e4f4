#include "cli/train_command.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/atomic_file.h"
#include "cli/fashion_mnist.h"
#include "cli/models.h"
#include "cli/pictures.h"
#include "cli/train.h"
#include "cli/train_summary.h"

namespace foregrad::cli {
namespace {

struct TrainCommand {
  std::string data = "fashion-mnist";
  std::string data_folder = kFashionMnistFolder;
  TrainOptions options;
  int threads = 0;
  std::string out = "foregrad-out";
  std::string json;
  bool no_pictures = false;
};

void add_options(CLI::App& command, TrainCommand& values) {
  TrainOptions& options = values.options;
  command.add_option("--data", values.data, "The data set")
      ->check(CLI::IsMember({"fashion-mnist"}))
      ->capture_default_str();
  command
      .add_option("--data-dir", values.data_folder,
                  "The folder with the data set's four gzipped IDX files")
      ->capture_default_str();
  command.add_option("--model", options.learner.model, "The network")
      ->check(CLI::IsMember(model_names()))
      ->capture_default_str();
  command.add_option("--steps", options.steps, "Steps to train (default: two epochs)")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command.add_option("--batch", options.batch_size, "Pictures in a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--seed", options.learner.seed,
                  "Decides parameters, order of pictures and dropout")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      .add_option("--lr", options.learner.learning_rate,
                  "Learning rate of SGD at first; it falls linearly towards 0")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--momentum", options.learner.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--threads", values.threads,
                  "Threads for operators (default: libtorch's choice). Beside other busy programs "
                  "set OMP_WAIT_POLICY=passive in the environment")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--compare", options.compare,
                   "Train eagerly too, side by side from the same seed, and compare");
  command.add_option("--out", values.out, "The folder for pictures of losses and graphs")
      ->capture_default_str();
  command.add_flag("--no-pictures", values.no_pictures, "Draw no pictures");
  command.add_option("--json", values.json, "Write the results to this file as a JSON object");
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

void print_path(const std::filesystem::path& path) { fmt::print("wrote {}\n", path.string()); }

void draw(const TrainResult& result, const std::filesystem::path& folder) {
  LossCurves curves;
  curves.title = fmt::format("{} on Fashion-MNIST, batches of {}", result.options.learner.model,
                             result.options.batch_size);
  curves.compiled = result.compiled.losses;
  if (result.eager) {
    curves.eager = result.eager->losses;
  }
  for (const auto& path : draw_losses(curves, folder / "loss")) {
    print_path(path);
  }
  if (result.report.specialisations.empty()) {
    return;
  }
  const auto& first = result.report.specialisations.front();
  for (const auto& path : draw_graph(first.forward_dot, folder / "forward")) {
    print_path(path);
  }
  for (const auto& path : draw_graph(first.backward_dot, folder / "backward")) {
    print_path(path);
  }
}

ExitCode run(const TrainCommand& command) {
  // What would fail after minutes of training is tried before.
  if (!command.no_pictures) {
    check_can_draw(command.out);
  }
  if (!command.json.empty()) {
    check_folder_is_writable(folder_of(command.json));
  }
  if (command.threads > 0) {
    at::set_num_threads(command.threads);
  }
  const FashionMnist data = load_fashion_mnist(command.data_folder);
  const TrainResult result = train(data, command.options, stderr);
  fmt::print("{}", to_text(result));
  if (!command.json.empty()) {
    write_file(command.json, to_json(result).dump(2) + "\n");
    print_path(command.json);
  }
  if (!command.no_pictures) {
    draw(result, command.out);
  }
  return result.is_as_eager() ? ExitCode::kOk : ExitCode::kMismatch;
}

}  // namespace

void add_train_command(CLI::App& application, ExitCode& result) {
  auto values = std::make_shared<TrainCommand>();
  CLI::App* command = application.add_subcommand(
      "train",
      "Train a network with its loss compiled, forward and backward, and compare with eager");
  command->footer(kTrainJsonHelp);
  add_options(*command, *values);
  command->callback([values, &result] { result = run(*values); });
}

}  // namespace foregrad::cli
