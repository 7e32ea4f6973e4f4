#include "cli/train_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command_run.h"
#include "idx_files.h"
#include "temporary_folder.h"

namespace foregrad::cli {
namespace {

using testing::CommandRun;
using testing::contents_of;
using ::testing::HasSubstr;
using testing::run_command;
using ::testing::StartsWith;

class TrainCommandTest : public ::testing::Test {
 protected:
  TrainCommandTest() {
    std::filesystem::create_directory(data_);
    testing::put_data_set(data_, 20, 10);
  }

  CommandRun train(std::vector<const char*> more) {
    std::vector<const char*> arguments{"train",   "--data-dir", data_.c_str(), "--batch", "8",
                                       "--steps", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path data_ = folder_ / "data";
  std::filesystem::path out_ = folder_ / "out";
  std::filesystem::path json_ = folder_ / "a.json";
};

TEST_F(TrainCommandTest, ComparesAndWritesJsonAndPictures) {
  const CommandRun run =
      train({"--compare", "--model", "cnn", "--out", out_.c_str(), "--json", json_.c_str()});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("Compiled equals eager, bit for bit, at each of 3 steps."));
  EXPECT_THAT(run.errors, HasSubstr("step 3/3: eager loss"));
  const auto json = nlohmann::json::parse(contents_of(json_));
  EXPECT_EQ(json["max_loss_diff"], 0);
  EXPECT_EQ(json["model"], "cnn");
  for (const char* name :
       {"loss.svg", "loss.png", "forward.svg", "forward.png", "backward.svg", "backward.png"}) {
    EXPECT_TRUE(std::filesystem::exists(out_ / name)) << name;
    EXPECT_THAT(run.output, HasSubstr("wrote " + (out_ / name).string()));
  }
}

TEST_F(TrainCommandTest, WithoutPictures) {
  const CommandRun run = train({"--no-pictures", "--out", out_.c_str(), "--threads", "1"});
  EXPECT_EQ(run.code, ExitCode::kOk) << run.errors;
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(TrainCommandTest, BadData) {
  testing::put(data_ / "train-images-idx3-ubyte.gz", "not gzip");
  const CommandRun run = train({"--no-pictures"});
  EXPECT_EQ(run.code, ExitCode::kData);
  EXPECT_THAT(run.errors, StartsWith("foregrad: error: `"));
  EXPECT_THAT(run.errors, HasSubstr("expected a gzip file"));
}

TEST_F(TrainCommandTest, UnwritablePlacesAreFoundBeforeTraining) {
  testing::put(folder_ / "file", "");
  const std::string below = (folder_ / "file/below").string();
  for (const auto& arguments :
       {std::vector<const char*>{"--out", below.c_str()},
        std::vector<const char*>{"--no-pictures", "--json", below.c_str()}}) {
    const CommandRun run = train(arguments);
    EXPECT_EQ(run.code, ExitCode::kIo);
    EXPECT_THAT(run.errors, StartsWith("foregrad: error: cannot write `"));
    EXPECT_THAT(run.errors, ::testing::Not(HasSubstr("step 1/3")));
  }
}

TEST_F(TrainCommandTest, JsonThatIsAFolder) {
  std::filesystem::create_directory(json_);
  const CommandRun run = train({"--no-pictures", "--json", json_.c_str()});
  EXPECT_EQ(run.code, ExitCode::kIo);
  EXPECT_THAT(run.errors, HasSubstr("Is a directory"));
}

TEST_F(TrainCommandTest, BadValues) {
  const std::vector<std::vector<const char*>> cases{
      {"--data", "cifar"}, {"--model", "gpt"}, {"--steps", "0"}, {"--steps", "x"},
      {"--batch", "0"},    {"--batch", "21"},  {"--seed", "-1"}, {"--lr", "-1"},
      {"--momentum", "2"}, {"--threads", "0"}, {"--nonsense"}};
  for (std::vector<const char*> arguments : cases) {
    const std::string option = arguments[0];
    arguments.push_back("--no-pictures");
    const CommandRun run = train(arguments);
    EXPECT_EQ(run.code, ExitCode::kUsage) << option << run.errors;
    EXPECT_THAT(run.errors, StartsWith("foregrad: error: "));
    EXPECT_THAT(run.errors, HasSubstr(option));
  }
}

}  // namespace
}  // namespace foregrad::cli
