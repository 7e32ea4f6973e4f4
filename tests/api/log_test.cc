#include "api/log.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <torch/nn/modules/linear.h>

#include <cstdlib>
#include <mutex>

#include "foregrad/compile.h"

namespace foregrad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class KeepingSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::vector<std::string> lines;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    lines.emplace_back(message.payload.begin(), message.payload.end());
  }
  void flush_() override {}
};

/// Keeps what is logged, with some topics on, until it goes.
class Log {
 public:
  explicit Log(std::string_view topics)
      : topics_before_(exchange_log_topics(parse_log_request(topics).topics)) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
  }
  ~Log() {
    spdlog::set_default_logger(logger_before_);
    exchange_log_topics(topics_before_);
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const std::vector<std::string>& lines() const { return sink_->lines; }

 private:
  std::shared_ptr<KeepingSink> sink_ = std::make_shared<KeepingSink>();
  std::shared_ptr<spdlog::logger> logger_before_ = spdlog::default_logger();
  LogTopics topics_before_;
};

at::Tensor twice_sine(const at::Tensor& x) { return at::sin(x) * 2; }

TEST(Log, ListsAreParsed) {
  EXPECT_EQ(parse_log_request("").topics.count(), 0u);
  const LogRequest two = parse_log_request("timing, graph,,");
  EXPECT_EQ(two.topics.count(), 2u);
  EXPECT_TRUE(two.topics.test(static_cast<size_t>(LogTopic::Graph)));
  EXPECT_TRUE(two.topics.test(static_cast<size_t>(LogTopic::Timing)));
  EXPECT_THAT(two.unknown, IsEmpty());
  EXPECT_TRUE(parse_log_request("all").topics.all());
  const LogTopics each = parse_log_request("graph,guards,recompiles,timing,fallbacks").topics;
  EXPECT_TRUE(each.all());
}

TEST(Log, UnknownNamesAreNamedBesideTheKnownOnes) {
  const LogRequest request = parse_log_request("grahp,timing,Guards");
  EXPECT_EQ(request.topics.count(), 1u);
  EXPECT_THAT(request.unknown, ElementsAre("grahp", "Guards"));
  EXPECT_EQ(describe_unknown(request),
            "`FOREGRAD_LOG`: expected topics out of `graph`, `guards`, `recompiles`, `timing`, "
            "`fallbacks`, or `all`, separated by commas; got `grahp`, `Guards`, which is ignored.");
  EXPECT_EQ(describe_unknown(parse_log_request("graph")), "");
}

TEST(Log, NothingIsWrittenUnasked) {
  const Log log("");
  const auto compiled = compile(twice_sine);
  compiled(at::ones({2}));
  compiled(at::ones({3}));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(Log, GraphsAreWrittenOnceACompilation) {
  const Log log("graph");
  const auto compiled = compile(twice_sine);
  compiled(at::ones({2}));
  compiled(at::ones({2}));
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(StartsWith("foregrad: graph: forward graph {"),
                                             HasSubstr("aten::sin")),
                                       StartsWith("foregrad: graph: backward graph {")));
}

TEST(Log, GuardsAreWritten) {
  const Log log("guards");
  const torch::nn::Linear net(2, 2);
  compile(net)(at::ones({1, 2}));
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(StartsWith("foregrad: guards: \n"),
                                             HasSubstr("is in training mode"))));
}

TEST(Log, RecompilesSayWhy) {
  const Log log("recompiles");
  const auto compiled = compile(twice_sine);
  compiled(at::ones({2}));
  EXPECT_THAT(log.lines(), IsEmpty());
  compiled(at::ones({3}));
  EXPECT_THAT(log.lines(),
              ElementsAre("foregrad: recompiles: " + compiled.report().recompiles.at(0)));
}

TEST(Log, TimingNamesTheStages) {
  const Log log("timing");
  compile(twice_sine)(at::ones({2}));
  EXPECT_THAT(log.lines(), ElementsAre(AllOf(StartsWith("foregrad: timing: compiled in "),
                                             HasSubstr("; record "), HasSubstr("; joint "))));
}

TEST(Log, EachFallbackIsWrittenThoughOneIsWarnedOf) {
  const auto run_twice = [] {
    const auto compiled = compile([](const at::Tensor& x) { return x * x.sum().item<double>(); });
    compiled(at::ones({2}));
    compiled(at::ones({2}));
  };
  {
    const Log log("");
    run_twice();
    EXPECT_THAT(log.lines(), ElementsAre(StartsWith("foregrad: a call runs eagerly: ")));
  }
  const Log log("fallbacks");
  run_twice();
  EXPECT_THAT(log.lines(), ElementsAre(StartsWith("foregrad: a call runs eagerly: "),
                                       StartsWith("foregrad: fallbacks: a call runs eagerly: ")));
}

TEST(LogDeathTest, TheEnvironmentIsReadAndItsMistakesWarnedOfOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    setenv("FOREGRAD_LOG", "timing,grahp", /*replace=*/1);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
    spdlog::set_pattern("%v");
    compile(twice_sine)(at::ones({2}));
    compile(twice_sine)(at::ones({2}));
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0),
              "^foregrad: `FOREGRAD_LOG`: expected [^\n]*got `grahp`, which is ignored.\n"
              "foregrad: timing: compiled in [^\n]*\n"
              "foregrad: timing: compiled in [^\n]*\n$");
}

}  // namespace
}  // namespace foregrad
