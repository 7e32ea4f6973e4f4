// What `foregrad train` says of a training: a text to read and a JSON object to compute with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/train.h"

namespace foregrad::cli {

/// Returns the middle value, the mean of the middle two for an even number of values, 0 for none.
double median(std::vector<double> values);

/// Returns one flat object; docs of each member are in `--help`. Members of the eager run are null
/// without `--compare`, as are numbers that are not finite.
nlohmann::ordered_json to_json(const TrainResult& result);

/// Returns a table for people, and why the training counts as failed, if it does.
std::string to_text(const TrainResult& result);

/// Describes the members of `to_json`, for `--help`.
extern const char* const kTrainJsonHelp;

}  // namespace foregrad::cli
