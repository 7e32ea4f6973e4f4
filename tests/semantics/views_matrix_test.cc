// Every view operator with every use of a view: written, written beside, returned.
#include "support/as_eager.h"

namespace foregrad::testing {
namespace {

struct View {
  const char* name;
  std::function<at::Tensor(const at::Tensor&)> of;  // of a tensor of sizes [2, 3, 4]
};

const View kViews[] = {
    {"view",
     [](const at::Tensor& x) {
       return x.view({6, 4});
     }},
    {"reshape",
     [](const at::Tensor& x) {
       return x.reshape({4, 6});
     }},
    {"flatten", [](const at::Tensor& x) { return x.flatten(1); }},
    {"unflatten",
     [](const at::Tensor& x) {
       return x.unflatten(2, {2, 2});
     }},
    {"transpose", [](const at::Tensor& x) { return x.transpose(0, 2); }},
    {"permute",
     [](const at::Tensor& x) {
       return x.permute({2, 0, 1});
     }},
    {"movedim", [](const at::Tensor& x) { return x.movedim(0, 2); }},
    {"mT", [](const at::Tensor& x) { return x.mT(); }},
    {"select", [](const at::Tensor& x) { return x.select(1, 1); }},
    {"slice", [](const at::Tensor& x) { return x.slice(1, 1, 3); }},
    {"slice with a step", [](const at::Tensor& x) { return x.slice(2, 0, 4, 2); }},
    {"narrow", [](const at::Tensor& x) { return x.narrow(0, 1, 1); }},
    {"unsqueeze", [](const at::Tensor& x) { return x.unsqueeze(1); }},
    {"squeeze", [](const at::Tensor& x) { return x.narrow(0, 1, 1).squeeze(0); }},
    {"expand",
     [](const at::Tensor& x) {
       return x.unsqueeze(0).expand({2, 2, 3, 4});
     }},
    {"diagonal", [](const at::Tensor& x) { return x.diagonal(0, 1, 2); }},
    {"unfold", [](const at::Tensor& x) { return x.unfold(2, 2, 2); }},
    {"unfold with gaps", [](const at::Tensor& x) { return x.unfold(2, 1, 3); }},
    {"unfold with overlaps", [](const at::Tensor& x) { return x.unfold(2, 2, 1); }},
    {"split", [](const at::Tensor& x) { return x.split(2, 2)[1]; }},
    {"split_with_sizes",
     [](const at::Tensor& x) {
       return x.split_with_sizes({1, 2}, 1)[1];
     }},
    {"chunk", [](const at::Tensor& x) { return x.chunk(2, 0)[0]; }},
    {"unbind", [](const at::Tensor& x) { return x.unbind(1)[2]; }},
    {"tensor_split", [](const at::Tensor& x) { return x.tensor_split(2, 1)[0]; }},
    {"alias", [](const at::Tensor& x) { return at::alias(x); }},
    {"detach", [](const at::Tensor& x) { return x.detach(); }},
    {"view of the same dtype", [](const at::Tensor& x) { return x.view(at::kFloat); }},
    {"as_strided",
     [](const at::Tensor& x) {
       return x.as_strided({2, 2}, {4, 1}, 5);
     }},
    {"slice of a transpose", [](const at::Tensor& x) { return x.transpose(0, 1).slice(0, 1, 3); }},
    {"diagonal of a select", [](const at::Tensor& x) { return x.select(0, 1).diagonal(); }},
};

struct Use {
  const char* name;
  std::function<Tensors(const at::Tensor& base, const at::Tensor& view)> run;
};

const Use kUses[] = {
    {"the view is written, the base used",
     [](const at::Tensor& base, const at::Tensor& view) -> Tensors {
       view.mul_(3);
       return {base * 2};
     }},
    {"the base is written, the view used",
     [](const at::Tensor& base, const at::Tensor& view) -> Tensors {
       base.mul_(3);
       return {view * 2};
     }},
    {"the view is written and returned",
     [](const at::Tensor&, const at::Tensor& view) -> Tensors {
       view.add_(1);
       return {view};
     }},
    {"the view is filled from another",
     [](const at::Tensor& base, const at::Tensor& view) -> Tensors {
       view.copy_(view.clone() * 2);
       return {base + 1, view};
     }},
    {"the view is returned",
     [](const at::Tensor&, const at::Tensor& view) -> Tensors { return {view}; }},
};

/// The base of the view is the argument itself, or an intermediate.
void expect_all(Kind kind, bool of_intermediate, bool grad_mode) {
  for (const View& view : kViews) {
    for (const Use& use : kUses) {
      SCOPED_TRACE(::testing::Message() << view.name << ": " << use.name);
      const Program program = [&, of_intermediate](const Tensors& in) {
        const auto base = of_intermediate ? in[0] * 2 : in[0];
        return use.run(base, view.of(base));
      };
      const std::vector<Scene> scenes{{.make = start_of(kind, {2, 3, 4}), .grad_mode = grad_mode}};
      expect_as_eager(program, scenes);
    }
  }
}

TEST(ViewsMatrix, OfAPlainArgument) { expect_all(Kind::Plain, false, true); }
TEST(ViewsMatrix, OfATrackedArgument) { expect_all(Kind::Tracked, false, true); }
TEST(ViewsMatrix, OfALeaf) { expect_all(Kind::Leaf, false, true); }
TEST(ViewsMatrix, OfATrackedArgumentWithoutGrad) { expect_all(Kind::Tracked, false, false); }
TEST(ViewsMatrix, OfAPlainIntermediate) { expect_all(Kind::Plain, true, true); }
TEST(ViewsMatrix, OfATrackedIntermediate) { expect_all(Kind::Leaf, true, true); }

}  // namespace
}  // namespace foregrad::testing
