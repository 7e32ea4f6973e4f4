// How autograd takes views from their bases again.
//
// libtorch takes a view by the sizes and strides that it has when it is asked. A functional wrapper
// it takes by calling the view operators again: that gives other gradients where a view was taken
// by strides outside of the view before it, and wrong ones where `squeeze_` or `transpose_` changed
// the view in place. Here wrappers are taken by sizes and strides too. Views of another dtype, or
// conjugate ones, are taken by their operators in either case.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>

namespace foregrad {

/// To be called with the arguments of an operator, since their bases may have been moved in their
/// storage, and with its results: lets autograd take those that are views from their bases by their
/// sizes and strides.
void follow_views(std::span<const c10::IValue> values);

}  // namespace foregrad
