#include "foregrad/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "ops/schema.h"

namespace foregrad {

void declare_effect(const std::string& name) {
  const size_t scope = name.find("::");
  const size_t dot = scope == std::string::npos ? scope : name.find('.', scope);
  const c10::OperatorName operator_name{
      name.substr(0, dot), dot == std::string::npos ? std::string() : name.substr(dot + 1)};
  const auto op = c10::Dispatcher::singleton().findSchema(operator_name);
  TORCH_CHECK(op,
              "foregrad: `declare_effect`: expected the name of a registered operator, such as "
              "`mylib::log` or `mylib::log.int`, got `",
              name, "`. Is its library loaded?");
  declare_effect(*op);
}

}  // namespace foregrad
