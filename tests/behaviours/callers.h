// What callers do with the results of a call, beyond differentiating them.
#pragma once

#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/function.h>

#include "support/as_eager.h"

namespace foregrad::testing {

/// Notes by which view operator autograd knows each result that is a view, then differentiates.
inline void name_views(const Called& called) {
  for (size_t i = 0; i < called.results.size(); ++i) {
    const at::Tensor& result = called.results[i];
    if (result.is_view() && result.grad_fn())
      called.seen.note(c10::str("grad_fn of result ", i), result.grad_fn()->name());
  }
  differentiate(called);
}

/// Writes each result in turn, as far as autograd lets it, then differentiates.
inline void write_results(const Called& called) {
  for (size_t i = 0; i < called.results.size(); ++i)
    called.seen.attempt(c10::str("a write to result ", i), [&] { called.results[i].mul_(2); });
  differentiate(called);
}

/// Writes each argument in turn, as far as autograd lets it, then differentiates.
inline void write_arguments(const Called& called) {
  for (size_t i = 0; i < called.arguments.size(); ++i)
    called.seen.attempt(c10::str("a write to argument ", i), [&] { called.arguments[i].mul_(2); });
  differentiate(called);
}

}  // namespace foregrad::testing
