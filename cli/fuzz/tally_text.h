// What is said of many programs: a text to read and a JSON object to compute with.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/fuzz/session.h"

namespace foregrad::cli::fuzz {

/// Returns tables of refusals and differences, most frequent first; the last line is
/// `programs N, as eager N, refused N, differ N`.
std::string to_text(const Tally& tally);

/// Returns the same as an object, and a tally of such an object.
nlohmann::ordered_json to_json(const Tally& tally, uint64_t seed);
Tally to_tally(const nlohmann::ordered_json& json);

}  // namespace foregrad::cli::fuzz
