// What every printed program holds beside its own code.
#pragma once

namespace foregrad::cli::fuzz {

/// Comes first.
inline constexpr const char* kSkeletonBegin =
    R"source(#include <foregrad/compile.h>
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Quarters from -2 to 2, or integers from 0 to 2, or truth values.
at::Tensor data(at::IntArrayRef sizes, at::ScalarType type, int64_t seed) {
  const bool has_quarters = c10::isFloatingType(type) || c10::isComplexType(type);
  at::Tensor result = at::arange(c10::multiply_integers(sizes)) * 5 + seed * 7;
  result = result.remainder(has_quarters ? 17 : 3);
  if (has_quarters) result = (result - 8).to(at::kFloat) / 4;
  return result.to(type).reshape(sizes);
}

void add(Tensors& all, const at::Tensor& tensor) { all.push_back(tensor); }
void add(Tensors& all, const Tensors& more) { all.insert(all.end(), more.begin(), more.end()); }

// Autocast on the CPU, without keeping casts.
class Autocast {
 public:
  explicit Autocast(bool is_enabled) : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, is_enabled);
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~Autocast() { at::autocast::set_autocast_enabled(at::kCPU, was_enabled_); }

 private:
  bool was_enabled_;
};

struct Prepared {
  Tensors visible;
  Tensors arguments;
};

void show(std::ostream& out, const std::string& name, const Tensors& tensors, bool are_gradients) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& t = tensors[i];
    out << name << i << ": ";
    if (!t.defined()) {
      out << "undefined\n";
      continue;
    }
    out << t.scalar_type() << t.sizes() << " strides " << t.strides() << " requires_grad "
        << t.requires_grad() << " is_leaf " << t.is_leaf() << " is_conj " << t.is_conj();
    if (!are_gradients) {
      out << " offset " << t.storage_offset() << " is_view " << t.is_view() << " version "
          << (t.is_inference() ? -1 : t._version()) << " storage " << t.storage().nbytes() << " bytes";
    }
    std::ostringstream elements;
    elements.precision(9);
    elements << t.detach().flatten();
    std::string line = elements.str();
    for (char& c : line) c = c == '\n' ? ' ' : c;
    out << " elements " << line << '\n';
  }
}

void show_all(std::ostream& out, const Prepared& prepared, const Tensors& outputs,
              const Tensors& gradients) {
  Tensors all = prepared.visible;
  add(all, outputs);
  show(out, "input ", prepared.visible, false);
  show(out, "output ", outputs, false);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!all[i].defined() || !all[j].defined()) continue;
      if (all[i].is_same(all[j])) out << "tensors " << j << " and " << i << " are one\n";
      if (all[i].is_alias_of(all[j])) out << "tensors " << j << " and " << i << " share storage\n";
    }
  }
  for (const at::Tensor& tensor : prepared.visible) {
    if (tensor.is_leaf()) show(out, "leaf's gradient ", {tensor.grad()}, true);
  }
  show(out, "returned gradient ", gradients, true);
}

at::Tensor tangent(const at::Tensor& output, char kind) {
  if (kind == 'e' && output.numel() > 0) return at::full({}, 0.5, output.options()).expand(output.sizes());
  if (kind == 'v')
    return (at::arange(output.numel()) % 5 - 2).div(4).to(output.options()).view(output.sizes());
  return at::ones_like(output, output.options().memory_format(at::MemoryFormat::Contiguous));
}

// Differentiates the chosen outputs, with respect to the given inputs if there are any; then
// `order` - 1 times the gradients that came before, with respect to the first tangents too if these
// are differentiated. Returns the gradients of all orders.
Tensors differentiate(const Tensors& outputs, const std::vector<size_t>& chosen, char kind,
                      bool keep, Tensors inputs, int order = 1, bool with_tangents = false) {
  Tensors roots;
  Tensors tangents;
  for (size_t i : chosen) {
    if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    tangents.push_back(tangent(outputs[i], kind));
    if (with_tangents) tangents.back().requires_grad_();
  }
  if (roots.empty()) return {};
  if (inputs.empty()) {
    torch::autograd::backward(roots, tangents, keep);
    return {};
  }
  Tensors all = torch::autograd::grad(roots, inputs, tangents, keep || order > 1, order > 1, true);
  Tensors last = all;
  if (with_tangents) add(inputs, tangents);
  for (int i = 2; i <= order; ++i) {
    roots.clear();
    tangents.clear();
    for (const at::Tensor& gradient : last) {
      if (!gradient.defined() || !gradient.requires_grad()) continue;
      roots.push_back(gradient);
      tangents.push_back(tangent(gradient, 'v'));
    }
    last.assign(inputs.size(), at::Tensor());
    if (!roots.empty())
      last = torch::autograd::grad(roots, inputs, tangents, keep || i < order, i < order, true);
    for (size_t k = 0; k < inputs.size(); ++k)
      all.push_back(last[k].defined() ? last[k].detach() : at::zeros_like(inputs[k]));
  }
  for (at::Tensor& gradient : all)
    if (order > 1 && gradient.defined()) gradient = gradient.detach();
  return all;
}

// Whether autograd was told of the last change of sizes.
bool knows_its_sizes(const at::Tensor& tensor) {
  if (!tensor.grad_fn()) return true;
  return tensor.grad_fn()->input_metadata(tensor.output_nr()).shape_as_dim_vector() == tensor.sym_sizes();
}

// Has the gradient retained, or doubled by a hook.
void watch(const at::Tensor& tensor, bool retains) {
  if (!tensor.defined() || !tensor.requires_grad() || tensor.is_view()) return;
  if (retains && tensor.grad_fn() && tensor.output_nr() > 0) return;  // libtorch may crash
  if (retains && !knows_its_sizes(tensor)) return;
  if (retains) return tensor.retain_grad();
  tensor.register_hook(
      [](const at::Tensor& gradient) { return gradient.defined() ? gradient * 2 : gradient; });
}

using Nodes = std::vector<c10::intrusive_ptr<torch::autograd::Node>>;

// Where gradients of a tensor go; of a leaf, what accumulates them.
c10::intrusive_ptr<torch::autograd::Node> history_of(const at::Tensor& tensor) {
  if (!tensor.requires_grad()) return {};
  return torch::autograd::impl::gradient_edge(tensor).function;
}

// What the caller made and the results, as far as they require grad, but for views and leaves that
// have a new history since `before`. For gradients of gradients nothing that has one, and no results.
Tensors differentiable(const Tensors& visible, const Nodes& before, const Tensors& outputs,
                       bool with_results) {
  Tensors result;
  for (size_t i = 0; i < visible.size(); ++i) {
    const at::Tensor& t = visible[i];
    const bool is_result = with_results && !t.is_view() && !t.is_leaf();
    if (t.requires_grad() && (history_of(t) == before[i] || (t.is_leaf() && !before[i]) || is_result))
      result.push_back(t);
  }
  if (!with_results) return result;
  for (const at::Tensor& t : outputs)
    if (t.defined() && t.requires_grad() && !t.is_view() && knows_its_sizes(t)) result.push_back(t);
  return result;
}
    )source";

/// Comes after the program's own functions.
inline constexpr const char* kSkeletonEnd = R"source(
std::string observe(const Function& function, int call) {
  std::ostringstream out;
  out << std::boolalpha;
  const Prepared prepared = inputs_of(call);
  try {
    caller(out, function, prepared, call);
  } catch (const c10::Error& error) {
    out << "throws " << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    out << "throws " << error.what() << '\n';
  }
  return out.str();
}

int main() {
  at::set_num_threads(1);
  const auto compiled = foregrad::compile(function);
  bool is_same = true;
  for (int call = 1; call <= kCalls; ++call) {
    std::istringstream eager(observe(function, call));
    std::istringstream got(observe([&](const Tensors& x) { return compiled(x); }, call));
    std::string a;
    std::string b;
    while (std::getline(eager, a), std::getline(got, b), eager || got) {
      if (a != b)
        std::cout << "call " << call << "\n  eager:    " << a << "\n  compiled: " << b << '\n';
      is_same = is_same && a == b;
      a.clear();
      b.clear();
    }
  }
  std::cout << (is_same ? "the same\n" : "differs\n");
  return is_same ? 0 : 1;
}
)source";

}  // namespace foregrad::cli::fuzz
