#include "support/seen.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/Type.h>

#include <cstring>
#include <regex>
#include <sstream>
#include <utility>

namespace foregrad::testing {

namespace {

/// The values alone, dense and outside of autograd.
at::Tensor data_of(const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return tensor.resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
}

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  return left.nbytes() == right.nbytes() &&
         (left.nbytes() == 0 || std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()) == 0);
}

/// Printing a complex tensor drops its imaginary part.
at::Tensor printable(const at::Tensor& data) {
  return data.is_complex() ? at::view_as_real(data) : data;
}

std::string text_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  // libtorch names the node that a view comes from; those of a compiled call have their own names.
  static const std::regex node(R"(^Output \d+ of .* (is a view and))");
  return c10::demangle(typeid(error).name()) + ": " +
         std::regex_replace(text, node, "An output of a node $1");
}

template <class T>
std::string text_of_fact(T fact) {
  try {
    return c10::str(std::boolalpha, fact());
  } catch (const std::exception& error) {
    return text_of(error);
  }
}

/// The name of the first tensor that `is_it` holds for.
template <class Predicate>
std::string first_name(const std::vector<NamedTensor>& tensors, Predicate is_it,
                       const char* otherwise) {
  for (const NamedTensor& other : tensors) {
    if (other.tensor.defined() && is_it(other.tensor)) return other.name;
  }
  return otherwise;
}

}  // namespace

bool has_its_data(const at::Tensor& tensor) {
  return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                          tensor.storage_offset()) <= tensor.storage().nbytes();
}

void Seen::note(std::string what, std::string value) {
  facts_.push_back({.what = std::move(what), .value = std::move(value)});
}

void Seen::note_values(const std::string& what, const at::Tensor& tensor) {
  note("defined: " + what, tensor.defined() ? "true" : "false");
  if (!tensor.defined()) return;
  note("dtype of " + what, c10::toString(tensor.scalar_type()));
  note("sizes of " + what, c10::str(tensor.sizes()));
  note("strides of " + what, c10::str(tensor.strides()));
  note("data of " + what, has_its_data(tensor) ? "present" : "freed");
  if (has_its_data(tensor)) {
    facts_.push_back({.what = "values of " + what, .value = "", .data = data_of(tensor)});
  }
}

bool Seen::attempt(const std::string& what, const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    note("error of " + what, text_of(error));
    return false;
  }
  note("error of " + what, "none");
  return true;
}

void Seen::note_tensors(const std::string& when, const std::vector<NamedTensor>& tensors) {
  const at::AutoGradMode grad_mode(true);
  for (const auto& [name, tensor] : tensors) {
    const std::string of = name + " " + when;
    note_values(of, tensor);
    if (!tensor.defined()) continue;
    const auto fact = [&](const char* what, const auto& get) {
      note(what + (" of " + of), text_of_fact(get));
    };
    const at::Tensor& t = tensor;
    note("first object that is " + of,
         first_name(
             tensors, [&](const at::Tensor& other) { return other.is_same(t); }, ""));
    note("first tensor in the storage of " + of,
         first_name(
             tensors, [&](const at::Tensor& other) { return other.is_alias_of(t); }, ""));
    fact("offset", [&] { return t.storage_offset(); });
    fact("size in bytes of the storage", [&] { return t.storage().nbytes(); });
    fact("conjugate bit", [&] { return t.is_conj(); });
    fact("negative bit", [&] { return t.is_neg(); });
    fact("inference flag", [&] { return t.is_inference(); });
    fact("version", [&] { return t._version(); });
    fact("requires_grad", [&] { return t.requires_grad(); });
    fact("is_leaf", [&] { return t.is_leaf(); });
    fact("presence of a grad_fn", [&] { return t.grad_fn() != nullptr; });
    fact("is_view", [&] { return t.is_view(); });
    fact("base", [&]() -> std::string {
      if (!t.is_view()) return "none";
      const at::TensorBase base = t._base();
      return first_name(
          tensors,
          [&](const at::Tensor& other) {
            return other.unsafeGetTensorImpl() == base.unsafeGetTensorImpl();
          },
          "not held");
    });
  }
}

std::vector<std::string> Seen::differences(const Seen& eager, const Seen& compiled) {
  std::vector<std::string> found;
  const size_t count = std::min(eager.facts_.size(), compiled.facts_.size());
  for (size_t i = 0; i < count; ++i) {
    const Fact& left = eager.facts_[i];
    const Fact& right = compiled.facts_[i];
    if (left.what != right.what) {
      found.push_back("eager tells of the " + left.what + ", compiled of the " + right.what);
      return found;
    }
    if (left.value != right.value) {
      found.push_back(left.what + ": eager `" + left.value + "`, compiled `" + right.value + "`");
    }
    if (left.data.defined() && right.data.defined() && !same_bits(left.data, right.data)) {
      std::ostringstream values;
      values << left.what << ": eager\n"
             << printable(left.data) << "\ncompiled\n"
             << printable(right.data);
      found.push_back(values.str());
    }
  }
  if (eager.facts_.size() != compiled.facts_.size()) {
    found.push_back(
        c10::str("eager tells ", eager.facts_.size(), " facts, compiled ", compiled.facts_.size()));
  }
  return found;
}

}  // namespace foregrad::testing
