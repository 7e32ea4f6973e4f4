// Walks the dispatcher's operators, says how the results of each are inferred, and holds the answer
// against docs/operators.md. Where libtorch's own kernels infer, they are held against the real
// ones by calls with random arguments.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "ops/cast_layout.h"
#include "ops/schema.h"
#include "ops/shape_rules.h"
#include "support/operator_samples.h"
#include "support/shape_check.h"

namespace foregrad {
namespace {

using testing::Finding;

constexpr int kPageSamples = 30;

/// Parts of names of operators that take or give no strided tensors of plain numbers, that are for
/// libtorch's own tests, or that do more than compute.
constexpr const char* kOutside[] = {"sparse",
                                    "csr",
                                    "csc",
                                    "bsr",
                                    "bsc",
                                    "spdiags",
                                    "nested",
                                    "jagged",
                                    "quan",
                                    "mkldnn_",
                                    "_test_",
                                    "foobar",
                                    "cslt",
                                    "int4",
                                    "int8",
                                    "from_file",
                                    "_print",
                                    "_pin_memory",
                                    "philox",
                                    "_dyn_q",
                                    "_fused_",
                                    "to_mkldnn",
                                    "batch_norm_reduce",
                                    "_amp_",
                                    "coalesced",
                                    "indices_copy",
                                    "values",
                                    "_dual",
                                    "_primal"};

/// Their kernels crash, or never end, for some of the arguments that are drawn.
constexpr const char* kUnsafe[] = {"aten::_chunk_cat",
                                   "aten::_foreach_copy",
                                   "aten::_new_zeros_with_same_feature_meta",
                                   "aten::_nnpack_spatial_convolution",
                                   "aten::adaptive_max_pool2d_backward",
                                   "aten::adaptive_max_pool3d_backward",
                                   "aten::range",
                                   "aten::smooth_l1_loss_backward",
                                   "aten::_log_softmax_backward_data",
                                   "aten::_stack",
                                   "aten::_softmax_backward_data"};

bool names_any(const std::string& name, auto& parts) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

/// Whether a traced program can call it: it gives tensors, writes none, and is not taken apart.
bool is_reached(const c10::OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  if (name.rfind("aten::", 0) != 0 || names_any(name, kOutside) || is_mutating(op)) return false;
  const bool gives_tensors = std::any_of(
      op.schema().returns().begin(), op.schema().returns().end(), [](const c10::Argument& result) {
        return result.type()->str().find("Tensor") != std::string::npos;
      });
  using c10::DispatchKey;
  const bool has_cpu = op.hasKernelForDispatchKey(DispatchKey::CPU);
  const bool is_taken_apart =
      op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) && !has_cpu;
  return gives_tensors && !is_taken_apart &&
         (has_cpu || op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional));
}

bool has_meta_kernel(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  return op.hasKernelForDispatchKey(DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
}

/// What libtorch's kernels say of random calls.
struct Sampled {
  int agrees = 0;
  int throws = 0;  // where the real kernel does not
};

/// What a call of the meta kernel is believed to give.
testing::Inference believed(const c10::OperatorHandle& op) {
  return [op, infer = testing::meta_kernel(op)](
             torch::jit::Stack arguments) -> std::optional<torch::jit::Stack> {
    auto results = infer(arguments);
    const bool is_view = !memory_aliases(op).empty();
    if (!is_view && cast_may_change_layout(arguments, *results)) return std::nullopt;
    return results;
  };
}

Sampled sample(const c10::OperatorHandle& op) {
  testing::Sampler sampler(1);
  Sampled sampled;
  const auto infer = believed(op);
  for (int i = 0; i < kPageSamples; ++i) {
    const auto arguments = testing::draw_arguments(op, sampler);
    if (!arguments) return sampled;
    const auto found = testing::compare_shapes(op, *arguments, infer);
    sampled.agrees += found.finding == Finding::Agrees;
    sampled.throws += found.finding == Finding::StricterThanIt;
    EXPECT_NE(found.finding, Finding::Differs) << found.text;
  }
  return sampled;
}

enum class Source : uint8_t { Rule, Held, Trusted, LastResort, Refused };

Source source_of(const c10::OperatorHandle& op) {
  const bool refused =
      op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
  const ShapeRule rule = find_shape_rule(op);
  if (rule) return rule == leave_to_real_kernel ? Source::LastResort : Source::Rule;
  if (!has_meta_kernel(op)) return refused ? Source::Refused : Source::LastResort;
  if (names_any(op.operator_name().name, kUnsafe)) return Source::Trusted;
  const Sampled sampled = sample(op);
  if (sampled.agrees > 0) return Source::Held;
  if (refused) return Source::Refused;
  return sampled.throws > 0 ? Source::LastResort : Source::Trusted;
}

struct Section {
  Source source;
  const char* heading;
  const char* text;
};

constexpr Section kSections[] = {
    {Source::LastResort, "Last resort",
     "The real kernel runs on zeros: right, but it costs time and memory."},
    {Source::Rule, "Shape rules",
     "Ours, held against the real kernels by calls with random arguments. What a rule does not "
     "cover is left to the\n"
     "last resort."},
    {Source::Held, "Meta kernels, held against the real ones",
     "libtorch's, by calls with random arguments."},
    {Source::Trusted, "Meta kernels, trusted",
     "libtorch's. The test can't draw arguments of them."},
    {Source::Refused, "Refused", "The type of the result depends on data."},
};

constexpr const char* kHead =
    "# Operators\n\nHow the results' sizes, strides and dtypes of each operator are inferred while "
    "a function is traced. Listed are\n"
    "the operators of `aten` that compute strided tensors on the CPU and are not taken apart into "
    "others.\n\n"
    "Written by `tests/ops/operators_page_test.cc`: `FOREGRAD_WRITE_PAGE=1 "
    "build/release/bin/test_ops\n"
    "--gtest_filter=OperatorsPage.*` writes it; do not edit by hand. An operator that leaves a "
    "list above for one below is\n"
    "progress ([adding-an-operator.md](adding-an-operator.md)).\n";

std::string page() {
  std::map<Source, std::vector<std::string>> found;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (op && is_reached(*op)) found[source_of(*op)].push_back(c10::toString(name).substr(6));
  }
  std::ostringstream text;
  text << kHead;
  for (const Section& section : kSections) {
    auto& names = found[section.source];
    std::sort(names.begin(), names.end());
    text << "\n## " << section.heading << "\n\n"
         << section.text << " " << names.size() << " operators.\n\n";
    for (const std::string& name : names) text << "- `" << name << "`\n";
  }
  return text.str();
}

TEST(OperatorsPage, IsAsTheOperatorsAre) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "libtorch's kernels read past their arguments for some of the random calls";
#endif
  const std::string path = FOREGRAD_SOURCE_DIR "/docs/operators.md";
  const std::string expected = page();
  if (std::getenv("FOREGRAD_WRITE_PAGE")) std::ofstream(path) << expected;
  std::ifstream file(path);
  const std::string found((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(found == expected) << path
                                 << " is not as it would be written (FOREGRAD_WRITE_PAGE=1)";
}

}  // namespace
}  // namespace foregrad
