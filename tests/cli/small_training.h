// A training small enough for a test.
#pragma once

#include <cstdio>

#include "cli/train.h"
#include "idx_files.h"
#include "temporary_folder.h"

namespace foregrad::cli::testing {

/// Trains a network for some steps on made-up pictures; progress is thrown away.
inline TrainResult train_a_little(const std::string& model, int64_t steps, bool compare) {
  const TemporaryFolder folder;
  put_data_set(folder.path(), 20, 10);
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  TrainOptions options{
      .learner = {.model = model, .seed = 3}, .steps = steps, .batch_size = 8, .compare = compare};
  TrainResult result = train(load_fashion_mnist(folder.path()), options, nowhere);
  std::fclose(nowhere);
  return result;
}

}  // namespace foregrad::cli::testing
