#include "ops/shape_rules.h"

#include <string_view>

#include "ops/batch_norm_shapes.h"
#include "ops/convolution_shapes.h"
#include "ops/elementwise_shapes.h"
#include "ops/fused_shapes.h"
#include "ops/indexing_shapes.h"
#include "ops/linear_algebra_shapes.h"
#include "ops/loss_shapes.h"
#include "ops/normalization_shapes.h"
#include "ops/pooling_shapes.h"
#include "ops/random_shapes.h"
#include "ops/reduction_shapes.h"

namespace foregrad {

Results leave_to_real_kernel(Arguments /*args*/) { return std::nullopt; }

const std::vector<ShapeRow>& shape_rows() {
  static const std::vector<ShapeRow> rows = [] {
    std::vector<ShapeRow> all;
    for (const auto& family : {
             batch_norm_rules(),
             convolution_rules(),
             elementwise_rules(),
             fused_rules(),
             indexing_rules(),
             linear_algebra_rules(),
             loss_rules(),
             normalization_rules(),
             pooling_rules(),
             random_rules(),
             reduction_rules(),
         }) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return rows;
}

ShapeRule find_shape_rule(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  for (const ShapeRow& row : shape_rows()) {
    if (row.name == std::string_view(name.name) &&
        row.overload == std::string_view(name.overload_name))
      return row.rule;
  }
  return nullptr;
}

}  // namespace foregrad
