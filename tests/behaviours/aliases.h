// Arguments that are views of one tensor.
#pragma once

#include <functional>
#include <vector>

#include "support/as_eager.h"

namespace foregrad::testing {

using ViewOf = std::function<at::Tensor(const at::Tensor&)>;

inline ViewOf slice_of(int64_t begin, int64_t end, int64_t step = 1) {
  return [=](const at::Tensor& base) { return base.slice(0, begin, end, step); };
}

inline ViewOf strided(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                      int64_t offset) {
  return [=](const at::Tensor& base) { return base.as_strided(sizes, strides, offset); };
}

inline at::Tensor itself(const at::Tensor& base) { return base; }

/// The views stand among the arguments in order; the base is kept.
inline MakeStart views_of_one(Kind kind, const std::vector<int64_t>& sizes,
                              const std::vector<ViewOf>& views) {
  return [=]() -> Start {
    Start start;
    const auto base = make(start, kind, sizes);
    for (const ViewOf& view : views) start.arguments.push_back(view(base));
    start.kept.push_back(base);
    return start;
  };
}

/// A tensor over the storage of `base` that autograd does not know as a view.
inline at::Tensor without_base(const at::Tensor& base, int64_t begin, int64_t end) {
  const at::NoGradGuard no_grad;
  return at::empty({0}, base.options().requires_grad(false))
      .set_(base.storage(), begin, {end - begin}, {1});
}

}  // namespace foregrad::testing
