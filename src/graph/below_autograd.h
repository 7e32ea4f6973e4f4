// Where compiled graphs run.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace foregrad {

/// While it lives, operators on this thread run below autograd and below autocast: a graph holds
/// the casts that were made when it was traced.
class BelowAutograd {
 private:
  at::AutoDispatchBelowADInplaceOrView autograd_;
  c10::impl::ExcludeDispatchKeyGuard autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace foregrad
