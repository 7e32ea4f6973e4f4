#include "foregrad/version.h"

#define FOREGRAD_TEXT_OF(value) #value
#define FOREGRAD_TEXT(value) FOREGRAD_TEXT_OF(value)

namespace foregrad {

std::string_view version() {
  return FOREGRAD_TEXT(FOREGRAD_VERSION_MAJOR) "." FOREGRAD_TEXT(
      FOREGRAD_VERSION_MINOR) "." FOREGRAD_TEXT(FOREGRAD_VERSION_PATCH);
}

}  // namespace foregrad
