#include "cli/fuzz/comparison.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Formatting.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/view_as_real.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <sstream>

namespace foregrad::cli::fuzz {
namespace {

/// What is compared of one tensor beside its elements; one text for each side, written only where
/// they differ.
struct Fact {
  const char* name;
  bool (*is_same)(const at::Tensor& a, const at::Tensor& b);
  std::string (*text)(const at::Tensor& tensor);
};

template <auto read>
bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return read(a) == read(b);
}

template <auto read>
std::string text(const at::Tensor& tensor) {
  std::ostringstream out;
  out << std::boolalpha << read(tensor);
  return out.str();
}

#define FACT(name, expression)                                     \
  Fact {                                                           \
    name, is_same<[](const at::Tensor& t) { return expression; }>, \
        text<[](const at::Tensor& t) { return expression; }>       \
  }

const Fact kFacts[] = {
    FACT("type", t.scalar_type()),
    FACT("sizes", t.sizes()),
    FACT("requires_grad", t.requires_grad()),
    FACT("is_leaf", t.is_leaf()),
    FACT("is_inference", t.is_inference()),
};

// The rest is no matter for gradients.
const Fact kLayoutFacts[] = {
    FACT("strides", t.strides()),
    FACT("is_conj", t.is_conj()),
    FACT("is_neg", t.is_neg()),
};

const Fact kOffset = FACT("storage offset", t.storage_offset());
const Fact kWeakFacts[] = {
    FACT("is_view", t.is_view()),
    FACT("version", t.is_inference() ? -1 : t._version()),
    FACT("storage size", t.storage().nbytes()),
};

template <class T>
bool is_nan(T value) {
  return value != value;
}

template <class T>
bool same_from(const char* a, const char* b, const at::Tensor& ta, const at::Tensor& tb,
               int64_t dim) {
  if (dim == ta.dim()) {
    if (std::memcmp(a, b, sizeof(T)) == 0) return true;
    T x;
    T y;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    if constexpr (c10::is_complex<T>::value) {
      const auto part = [](auto p, auto q) { return p == q || (is_nan(p) && is_nan(q)); };
      return part(x.real(), y.real()) && part(x.imag(), y.imag());
    }
    return is_nan(x) && is_nan(y);
  }
  const int64_t step_a = ta.stride(dim) * static_cast<int64_t>(sizeof(T));
  const int64_t step_b = tb.stride(dim) * static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < ta.size(dim); ++i) {
    if (!same_from<T>(a + i * step_a, b + i * step_b, ta, tb, dim + 1)) return false;
  }
  return true;
}

}  // namespace

bool has_same_elements(const at::Tensor& a, const at::Tensor& b) {
  // Autograd gives zeros without memory for derivatives that are zero.
  if (a._is_zerotensor() || b._is_zerotensor()) return a.detach().equal(b.detach());
  const bool is_coarse_complex = a.is_complex() && a.scalar_type() != at::kComplexFloat &&
                                 a.scalar_type() != at::kComplexDouble;
  if (is_coarse_complex) {
    const auto numbers = [](const at::Tensor& tensor) {
      return at::view_as_real(tensor.is_conj() ? tensor.detach().conj() : tensor.detach());
    };
    return has_same_elements(numbers(a), numbers(b));
  }
  const auto* data_a = static_cast<const char*>(a.const_data_ptr());
  const auto* data_b = static_cast<const char*>(b.const_data_ptr());
  return AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      at::kBool, at::kHalf, at::kBFloat16, a.scalar_type(), "has_same_elements",
      [&] { return same_from<scalar_t>(data_a, data_b, a, b, 0); });
}

namespace {

/// Sums of three or more gradients depend on their order, and a missing one counts as 0: which
/// turns -0 into 0.
bool are_close(const at::Tensor& a, const at::Tensor& b, double epsilon) {
  if (a.numel() == 0) return true;
  // What is summed is of the order of 1, though it may cancel.
  const double largest = std::max(a.detach().abs().nan_to_num(0, 0, 0).max().item<double>(), 1.0);
  return at::allclose(a.detach(), b.detach(), 8 * epsilon, 8 * epsilon * largest, true);
}

/// Kernels may sum a tensor in another order where it begins elsewhere: the last two bits of what a
/// call gives. The sign of a zero is no matter of rounding.
bool are_rounded(const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType type = c10::toRealValueType(a.scalar_type());
  if (type != at::kFloat && type != at::kDouble) return false;
  const auto signs = [](const at::Tensor& tensor) {
    const at::Tensor stored = tensor.detach().resolve_conj();
    return at::signbit(stored.is_complex() ? at::view_as_real(stored) : stored);
  };
  return are_close(a, b, type == at::kFloat ? 0x1p-25 : 0x1p-54) && signs(a).equal(signs(b));
}

std::string elements_text(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.detach().flatten();
  std::string result = out.str();
  for (char& c : result) {
    if (c == '\n') c = ' ';
  }
  return result;
}

Difference differ(const std::string& what, const Seen& seen, size_t index, const std::string& eager,
                  const std::string& compiled) {
  return {.kind = what + " of " + seen.role,
          .detail = fmt::format("{} of {} (number {}): eager {}, compiled {}", what, seen.role,
                                index, eager, compiled),
          .is_weak = false};
}

std::optional<Difference> compare_fact(const Fact& fact, const Seen& eager, const Seen& compiled) {
  for (size_t i = 0; i < eager.tensors.size(); ++i) {
    const at::Tensor& a = eager.tensors[i];
    const at::Tensor& b = compiled.tensors[i];
    if (a.defined() && !fact.is_same(a, b)) {
      return differ(fact.name, eager, i, fact.text(a), fact.text(b));
    }
  }
  return std::nullopt;
}

std::optional<Difference> compare_presence(const Seen& eager, const Seen& compiled) {
  const size_t count = eager.tensors.size();
  if (count != compiled.tensors.size()) {
    return differ("number", eager, 0, std::to_string(count),
                  std::to_string(compiled.tensors.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    const bool a = eager.tensors[i].defined();
    const bool b = compiled.tensors[i].defined();
    if (a != b) return differ("presence", eager, i, fmt::format("{}", a), fmt::format("{}", b));
  }
  return std::nullopt;
}

/// Compares what two tensors need for their elements to be compared, then the elements.
std::optional<Difference> compare_role(const Seen& eager, const Seen& compiled, double epsilon) {
  if (auto difference = compare_presence(eager, compiled)) return difference;
  for (const Fact& fact : kFacts) {
    if (auto difference = compare_fact(fact, eager, compiled)) return difference;
  }
  for (const Fact& fact : kLayoutFacts) {
    if (eager.are_gradients) break;
    if (auto difference = compare_fact(fact, eager, compiled)) return difference;
  }
  for (size_t i = 0; i < eager.tensors.size(); ++i) {
    const at::Tensor& a = eager.tensors[i];
    const at::Tensor& b = compiled.tensors[i];
    if (!a.defined() || has_same_elements(a, b)) continue;
    if (!(eager.are_gradients ? are_close(a, b, epsilon) : are_rounded(a, b))) {
      return differ("elements", eager, i, elements_text(a), elements_text(b));
    }
  }
  return eager.are_gradients ? std::nullopt : compare_fact(kOffset, eager, compiled);
}

/// The rounding of gradients, which may have been summed in the coarsest dtype of what is seen; a
/// double may have been computed in single precision.
double coarsest_epsilon(const std::vector<Seen>& all) {
  for (const Seen& seen : all) {
    for (const at::Tensor& tensor : seen.tensors) {
      if (tensor.defined() && c10::toRealValueType(tensor.scalar_type()) == at::kBFloat16)
        return 0x1p-8;
    }
  }
  return 0x1p-23;
}

/// All visible tensors in a row, each with its role.
struct Flat {
  std::vector<const at::Tensor*> tensors;
  std::vector<const Seen*> roles;

  explicit Flat(const std::vector<Seen>& all) {
    for (const Seen& seen : all) {
      for (const at::Tensor& tensor : seen.tensors) {
        if (!tensor.defined()) continue;
        tensors.push_back(&tensor);
        roles.push_back(&seen);
      }
    }
  }

  bool is_same(size_t i, size_t j) const { return tensors[i]->is_same(*tensors[j]); }
  bool shares(size_t i, size_t j) const {
    return tensors[i]->storage().is_alias_of(tensors[j]->storage());
  }
};

std::optional<Difference> compare_aliasing(const std::vector<Seen>& eager,
                                           const std::vector<Seen>& compiled) {
  const Flat a(eager);
  const Flat b(compiled);
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (a.roles[i]->are_gradients && a.roles[j]->are_gradients) continue;
      const auto differ = [&](const char* what, bool in_eager) -> Difference {
        const std::string kind =
            fmt::format("{} of {} and {}", what, a.roles[j]->role, a.roles[i]->role);
        return {.kind = kind,
                .detail = fmt::format("{} (numbers {} and {} of all that is seen): eager {}, "
                                      "compiled {}",
                                      kind, j, i, in_eager, !in_eager),
                .is_weak = false};
      };
      if (a.is_same(i, j) != b.is_same(i, j)) return differ("identity", a.is_same(i, j));
      if (a.shares(i, j) != b.shares(i, j)) return differ("shared storage", a.shares(i, j));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Difference> first_difference(const std::vector<Seen>& eager,
                                           const std::vector<Seen>& compiled) {
  const double epsilon = coarsest_epsilon(eager);
  for (size_t role = 0; role < eager.size(); ++role) {
    if (auto difference = compare_role(eager[role], compiled[role], epsilon)) return difference;
  }
  if (auto difference = compare_aliasing(eager, compiled)) return difference;
  for (const Fact& fact : kWeakFacts) {
    for (size_t role = 0; role < eager.size(); ++role) {
      if (eager[role].are_gradients) continue;
      auto difference = compare_fact(fact, eager[role], compiled[role]);
      if (!difference) continue;
      difference->is_weak = true;
      return difference;
    }
  }
  return std::nullopt;
}

}  // namespace foregrad::cli::fuzz
