#include "cli/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/failure.h"

namespace foregrad::cli {
namespace {

const char* advice_for(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return "Free some space, or choose another place.";
    case EACCES:
    case EPERM:
    case EROFS: return "Choose a folder that you may write to.";
    case ENOENT:
    case ENOTDIR: return "Make its folder first, or choose another place.";
    default: return "Choose another place.";
  }
}

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw Failure(ExitCode::kIo, fmt::format("cannot write `{}`: {}. {}", path.string(),
                                           std::strerror(error), advice_for(error)));
}

/// A file under a temporary name, removed unless it is renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target),
        name_(target.string() + ".XXXXXX"),
        descriptor_(mkostemp(name_.data(), O_CLOEXEC)) {
    if (descriptor_ < 0) {
      fail(target_, errno);
    }
  }

  ~TemporaryFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    if (!name_.empty()) {
      unlink(name_.c_str());
    }
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void rename_to_target() {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor_, 0666 & ~mask) != 0 || fsync(descriptor_) != 0) {
      fail(target_, errno);
    }
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 || rename(name_.c_str(), target_.c_str()) != 0) {
      fail(target_, errno);
    }
    name_.clear();
  }

 private:
  std::filesystem::path target_;
  std::string name_;
  int descriptor_;
};

}  // namespace

void write_all(int descriptor, std::string_view contents, const std::filesystem::path& path) {
  while (!contents.empty()) {
    const ssize_t written = write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno != EINTR) {
      fail(path, errno);
    }
    if (written > 0) {
      contents.remove_prefix(static_cast<size_t>(written));
    }
  }
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  TemporaryFile file(path);
  write_all(file.descriptor(), contents, path);
  file.rename_to_target();
}

void check_folder_is_writable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail(folder, error.value());
  }
  const TemporaryFile probe(folder / ".foregrad-probe");
}

}  // namespace foregrad::cli
