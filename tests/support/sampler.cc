#include "support/sampler.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

namespace foregrad::testing {

int64_t Sampler::between(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine_);
}

std::vector<int64_t> Sampler::sizes(int64_t min_dim, int64_t max_dim) {
  std::vector<int64_t> sizes(static_cast<size_t>(between(min_dim, max_dim)));
  for (int64_t& size : sizes) size = between(1, 4);
  if (!sizes.empty() && one_in(12))
    sizes[static_cast<size_t>(between(0, static_cast<int64_t>(sizes.size()) - 1))] = 0;
  return sizes;
}

at::ScalarType Sampler::floating() {
  return one_of({at::kFloat, at::kFloat, at::kFloat, at::kDouble, at::kHalf, at::kBFloat16});
}

at::ScalarType Sampler::any_dtype() {
  if (!one_in(3)) return floating();
  return one_of({at::kLong, at::kInt, at::kByte, at::kBool, at::kComplexFloat});
}

std::vector<int64_t> Sampler::order(size_t dims) {
  std::vector<int64_t> order(dims);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), engine_);
  return order;
}

at::Tensor Sampler::in_some_layout(at::IntArrayRef sizes, at::ScalarType dtype) {
  const auto dims = static_cast<int64_t>(sizes.size());
  const auto options = at::TensorOptions().dtype(dtype);
  const int64_t layout = dims == 0 ? 0 : between(0, 8);
  const auto dim = dims == 0 ? 0 : between(0, dims - 1);
  const auto place = static_cast<size_t>(dim);
  if (layout <= 2) return at::zeros(sizes, options);
  std::vector<int64_t> given(sizes.begin(), sizes.end());
  if (layout == 3 && (dims == 4 || dims == 5)) {
    return at::zeros(sizes, options)
        .contiguous(dims == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d);
  }
  if (layout == 4) {  // gaps
    given[place] = given[place] * 2 + 1;
    return at::zeros(given, options).slice(dim, 1, c10::nullopt, 2);
  }
  if (layout == 5) {  // expanded
    given[place] = 1;
    return at::zeros(given, options).expand(sizes);
  }
  if (layout == 6) {  // any stride will do where a size is one
    at::Tensor tensor = at::zeros(sizes, options);
    auto strides = tensor.strides().vec();
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == 1) strides[i] = between(1, 9);
    }
    return tensor.as_strided(sizes, strides);
  }
  const std::vector<int64_t> memory = order(given.size());
  std::vector<int64_t> back(given.size());
  std::vector<int64_t> permuted(given.size());
  for (size_t i = 0; i < memory.size(); ++i) {
    permuted[i] = given[static_cast<size_t>(memory[i])];
    back[static_cast<size_t>(memory[i])] = static_cast<int64_t>(i);
  }
  if (layout == 8) permuted.back() += 1;  // and gaps
  at::Tensor tensor = at::zeros(permuted, options);
  if (layout == 8) tensor = tensor.slice(dims - 1, 0, permuted.back() - 1);
  return tensor.permute(back);
}

at::Tensor Sampler::tensor(at::IntArrayRef sizes, at::ScalarType dtype) {
  at::Tensor tensor = in_some_layout(sizes, dtype);
  // Through the storage: elements may lie on each other.
  at::empty({0}, tensor.options())
      .set_(tensor.storage(), 0,
            {static_cast<int64_t>(tensor.storage().nbytes() / tensor.element_size())})
      .fill_(at::isIntegralType(dtype, true) ? 1.0 : 0.5);
  return tensor;
}

at::Tensor Sampler::number() {
  at::Tensor number = c10::scalar_to_tensor(one_in(2) ? at::Scalar(0.5) : at::Scalar(int64_t{1}));
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

at::Tensor Sampler::indices(at::IntArrayRef sizes, at::ScalarType dtype) {
  return in_some_layout(sizes, dtype);
}

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// Draws one call's arguments.
class ArgumentDraw {
 public:
  explicit ArgumentDraw(Sampler& sampler)
      : sampler_(sampler), sizes_(sampler.sizes(0, 5)), dtype_(sampler.any_dtype()) {}

  std::optional<c10::IValue> argument(const c10::Argument& argument) {
    return of_type(argument, *argument.type());
  }

 private:
  std::vector<int64_t> broadcast_sizes() {
    std::vector<int64_t> sizes = sizes_;
    if (sampler_.one_in(2)) return sizes;
    if (!sizes.empty() && sampler_.one_in(2)) sizes.erase(sizes.begin());
    for (int64_t& size : sizes) {
      if (sampler_.one_in(3)) size = 1;
    }
    return sizes;
  }

  at::Tensor tensor(const std::string& name) {
    const auto sizes = first_ ? sizes_ : broadcast_sizes();
    const bool may_be_number = !first_;
    first_ = false;
    if (contains(name, "ind") || name == "target") return sampler_.indices(sizes);
    if (contains(name, "mask") || name == "condition") return sampler_.indices(sizes, at::kBool);
    if (may_be_number && sampler_.one_in(12)) return sampler_.number();
    return sampler_.tensor(sizes, sampler_.one_in(6) ? sampler_.any_dtype() : dtype_);
  }

  int64_t dim() {
    const auto dims = static_cast<int64_t>(sizes_.size());
    return sampler_.one_in(10)
               ? dims
               : sampler_.between(-std::max<int64_t>(dims, 1), std::max<int64_t>(dims - 1, 0));
  }

  int64_t number(const std::string& name) {
    return contains(name, "dim") || name == "axis" ? dim() : sampler_.between(0, 3);
  }

  std::vector<int64_t> numbers(const c10::Argument& argument) {
    const std::string& name = argument.name();
    if (name == "size" || contains(name, "sizes")) return sizes_;
    const auto count = argument.N() && *argument.N() > 1
                           ? *argument.N()
                           : sampler_.between(0, static_cast<int64_t>(sizes_.size()));
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = this->number(name);
      const bool is_new = std::find(numbers.begin(), numbers.end(), number) == numbers.end();
      if (is_new || !contains(name, "dim")) numbers.push_back(number);
    }
    return numbers;
  }

  std::optional<c10::IValue> of_type(const c10::Argument& argument, const c10::Type& type) {
    const std::string& name = argument.name();
    switch (type.kind()) {
      case c10::TypeKind::OptionalType:
        if (name == "device" || name == "layout" || name == "pin_memory" || sampler_.one_in(3))
          return c10::IValue();
        return of_type(argument, *type.containedType(0));
      case c10::TypeKind::TensorType: return tensor(name);
      case c10::TypeKind::BoolType: return sampler_.one_in(2);
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType: return number(name);
      case c10::TypeKind::FloatType: return 0.5;
      case c10::TypeKind::NumberType:
        return sampler_.one_in(3)   ? c10::IValue(0.5)
               : sampler_.one_in(4) ? c10::IValue(at::Scalar(c10::complex<double>(1, 1)))
                                    : c10::IValue(int64_t{1});
      case c10::TypeKind::StringType:
        return argument.default_value() ? *argument.default_value() : c10::IValue("mean");
      case c10::TypeKind::ScalarTypeType: return static_cast<int64_t>(sampler_.any_dtype());
      case c10::TypeKind::GeneratorType: return c10::IValue();
      case c10::TypeKind::MemoryFormatType:
        return sampler_.one_of({at::MemoryFormat::Contiguous, at::MemoryFormat::Preserve});
      case c10::TypeKind::ListType: return list_of(argument, *type.containedType(0));
      default: return std::nullopt;
    }
  }

  std::optional<c10::IValue> list_of(const c10::Argument& argument, const c10::Type& element) {
    const int64_t count = argument.N() ? *argument.N() : sampler_.between(1, 3);
    switch (element.kind()) {
      case c10::TypeKind::TensorType: {
        c10::List<at::Tensor> tensors;
        for (int64_t i = 0; i < count; ++i) tensors.push_back(tensor(argument.name()));
        return tensors;
      }
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType: return numbers(argument);
      case c10::TypeKind::BoolType: {
        c10::List<bool> flags;
        for (int64_t i = 0; i < count; ++i) flags.push_back(!sampler_.one_in(3));
        return flags;
      }
      default: return std::nullopt;
    }
  }

  Sampler& sampler_;
  std::vector<int64_t> sizes_;
  at::ScalarType dtype_;
  bool first_ = true;
};

}  // namespace

std::optional<torch::jit::Stack> draw_arguments(const c10::FunctionSchema& schema,
                                                Sampler& sampler) {
  ArgumentDraw draw(sampler);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : schema.arguments()) {
    auto drawn = draw.argument(argument);
    if (!drawn) return std::nullopt;
    stack.push_back(std::move(*drawn));
  }
  return stack;
}

}  // namespace foregrad::testing
