#include "cli/fuzz/operation.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

namespace foregrad::cli::fuzz {
namespace {

constexpr size_t kCategories = static_cast<size_t>(Category::Metadata) + 1;
using ByCategory = std::array<std::vector<const Operation*>, kCategories>;

ByCategory sort_by_category() {
  ByCategory result;
  for (const Operations* table : {&view_operations(), &compute_operations(), &write_operations()}) {
    for (const Operation& row : *table) result[static_cast<size_t>(row.category)].push_back(&row);
  }
  return result;
}

}  // namespace

const std::vector<const Operation*>& operations_of(Category category) {
  static const ByCategory kRows = sort_by_category();
  return kRows[static_cast<size_t>(category)];
}

const Operation& operation(const std::string& expression) {
  const Operation* found = nullptr;
  for (size_t category = 0; category < kCategories && !found; ++category) {
    for (const Operation* row : operations_of(static_cast<Category>(category))) {
      if (row->expression == expression) found = row;
    }
  }
  TORCH_CHECK_VALUE(found, "no operation of the fuzzer is `", expression, "`.");
  return *found;
}

const Operation& draw_operation(Random& random, Category category) {
  const auto& rows = operations_of(category);
  int64_t total = 0;
  for (const Operation* row : rows) total += row->weight;
  int64_t chosen = random.below(total);
  const auto found = std::ranges::find_if(rows, [&](const Operation* row) {
    chosen -= row->weight;
    return chosen < 0;
  });
  TORCH_INTERNAL_ASSERT(found != rows.end(), "weights do not sum up");
  return **found;
}

}  // namespace foregrad::cli::fuzz
