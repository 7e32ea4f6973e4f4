// Views by strides that may be written through further views.
//
// libtorch's functionalization takes `as_strided` as a view of the view before it, and then refuses
// writes through what is taken of the result. What it writes back through `unfold` is zero between
// the windows, and through `expand` a sum of differences. All are taken here as views of the memory
// that the tensor lies in, by sizes and strides, which says exactly which elements they are. And
// after `set_` libtorch refuses writes through older views; here they stay what they are.
#pragma once

namespace foregrad {

/// Puts the kernels in place, once in a process.
void keep_strided_views();

}  // namespace foregrad
