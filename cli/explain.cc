#include "cli/explain.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/examples.h"
#include "cli/pictures.h"

namespace foregrad::cli {
namespace {

using Specialisation = decltype(Report::specialisations)::value_type;

struct ExplainCommand {
  std::string example;
  bool list = false;
  std::string graph;  // empty: forward and backward
  std::string out;    // empty: no pictures
};

void print_section(const char* title, const std::string& text) {
  fmt::print("== {} ==\n{}{}\n", title, text, text.ends_with('\n') ? "" : "\n");
}

void print_graphs(const ExplainCommand& command, const Specialisation& specialisation) {
  if (command.graph.empty() || command.graph == "forward") {
    print_section("forward graph", specialisation.forward_graph);
  }
  if (command.graph.empty() || command.graph == "backward") {
    print_section("backward graph", specialisation.backward_graph);
  }
  if (command.graph == "joint") {
    print_section("joint graph", specialisation.joint_graph);
  }
}

void draw(const ExplainCommand& command, const Specialisation& specialisation) {
  const std::filesystem::path folder = command.out;
  check_can_draw(folder);
  for (const auto& [name, source] : {std::pair{"forward", &specialisation.forward_dot},
                                     std::pair{"backward", &specialisation.backward_dot}}) {
    for (const auto& path :
         draw_graph(*source, folder / fmt::format("{}-{}", command.example, name))) {
      fmt::print("wrote {}\n", path.string());
    }
  }
}

ExitCode print_list() {
  for (const Example& example : examples()) {
    fmt::print("{:<12}{}\n", example.name, example.description);
  }
  return ExitCode::kOk;
}

ExitCode run(const ExplainCommand& command) {
  if (command.list) {
    return print_list();
  }
  if (command.example.empty()) {
    throw Failure(ExitCode::kUsage,
                  "`explain`: expected the name of an example; `--list` shows them.");
  }
  const Report report = find_example(command.example).run();
  for (const auto& reason : report.fallback_reasons) {
    fmt::print("fell back to eager: {}\n", reason);
  }
  for (const auto& specialisation : report.specialisations) {
    print_section("signature", specialisation.signature);
    print_graphs(command, specialisation);
    print_section("guards", specialisation.guards);
    std::string stages;
    for (const auto& stage : specialisation.stages) {
      stages += fmt::format("{:<24}{:>9.3f} ms\n", stage.name, stage.ms);
    }
    print_section("compile stages", stages);
    fmt::print("saved for backward: {} bytes\n", specialisation.saved_bytes);
    if (!command.out.empty()) {
      draw(command, specialisation);
    }
  }
  return report.eager_calls == 0 ? ExitCode::kOk : ExitCode::kMismatch;
}

}  // namespace

void add_explain_command(CLI::App& application, ExitCode& result) {
  auto values = std::make_shared<ExplainCommand>();
  CLI::App* command = application.add_subcommand(
      "explain", "Print and draw the graphs that an example is compiled to");
  command->add_option("example", values->example, "The name of an example");
  command->add_flag("--list", values->list, "List the examples");
  command
      ->add_option("--graph", values->graph,
                   "Print only this graph (default: forward and backward)")
      ->check(CLI::IsMember({"forward", "backward", "joint"}));
  command->add_option("--out", values->out, "Draw the forward and backward graph into this folder");
  command->callback([values, &result] { result = run(*values); });
}

}  // namespace foregrad::cli
