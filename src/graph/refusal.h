// The error for a program that Foregrad does not compile.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace foregrad {

/// Thrown where a program can't be compiled although eager runs it. Under `Policy::Eager` the call
/// runs eagerly and the report counts it; under `Policy::Refuse` it reaches the caller. The user's
/// own exceptions are never of this type.
class Refusal : public c10::Error {
 public:
  explicit Refusal(std::string what)
      : c10::Error(c10::SourceLocation{__func__, __FILE__, __LINE__}, std::move(what)) {}
};

}  // namespace foregrad
