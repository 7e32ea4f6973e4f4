// A process that dies takes along what it had counted. A page of memory shared with it tells which
// program it was at; the ones before are run again, in another process, to count them. Programs
// that kill are rare, so this costs little, and nothing has to be sent program by program.
#include "cli/fuzz/isolation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/failure.h"
#include "cli/fuzz/child.h"
#include "cli/fuzz/tally_text.h"

namespace foregrad::cli::fuzz {
namespace {

constexpr uint64_t kBatch = 500;

/// A number that a child process writes and its parent reads.
class SharedNumber {
 public:
  SharedNumber()
      : page_(mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) throw Failure(ExitCode::kInternal, "cannot map shared memory.");
    value_ = new (page_) std::atomic<uint64_t>(0);
  }
  ~SharedNumber() { munmap(page_, sizeof(std::atomic<uint64_t>)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  void set(uint64_t number) { value_->store(number); }
  uint64_t get() const { return value_->load(); }

 private:
  void* page_;
  std::atomic<uint64_t>* value_;
};

void add(const Tally& more, Tally& tally) {
  tally.programs += more.programs;
  tally.as_eager += more.as_eager;
  tally.refused += more.refused;
  tally.differ += more.differ;
  tally.eager_threw += more.eager_threw;
  for (const auto& [name, group] : more.refusals) add(name, group, tally.refusals);
  for (const auto& [name, group] : more.differences) add(name, group, tally.differences);
}

/// A message cut short may end in half a character.
std::string to_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Difference death_of(const ChildEnd& end) {
  return {.kind = "process died of " + end.death,
          .detail = "process died of " + end.death,
          .is_weak = false};
}

/// Runs one batch after another.
class IsolatedSession {
 public:
  IsolatedSession(const SessionOptions& options, const Compiler& compiler)
      : options_(options), compiler_(compiler), next_(options.first) {}

  Tally run(const std::function<void(const Tally&)>& between) {
    while (!is_over()) {
      if (between) between(tally_);
      SessionOptions batch = options_;
      batch.first = next_;
      batch.programs = kBatch;
      if (options_.programs)
        batch.programs = std::min(kBatch, *options_.programs - tally_.programs);
      if (options_.seconds) batch.seconds = *options_.seconds - seconds();
      run_batch(batch);
    }
    tally_.seconds = seconds();
    return std::move(tally_);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  bool is_over() const {
    return (options_.programs && tally_.programs >= *options_.programs) ||
           (options_.seconds && seconds() >= *options_.seconds);
  }

  ChildEnd run_child(const SessionOptions& batch) {
    return run_in_child([&] {
      const auto note = [&](const Tally& tally) { current_.set(batch.first + tally.programs); };
      return to_text(to_json(run_session(batch, compiler_, note), batch.seed));
    });
  }

  void run_batch(const SessionOptions& batch) {
    ChildEnd end = run_child(batch);
    if (!end.text) {
      const uint64_t killer = current_.get();
      SessionOptions again = batch;
      again.programs = killer - batch.first;
      again.seconds.reset();
      count_death(killer, end);
      if (*again.programs > 0) end = run_child(again);
      next_ = killer + 1;
    }
    if (!end.text) return;
    const Tally tally = to_tally(nlohmann::ordered_json::parse(*end.text));
    next_ = std::max(next_, batch.first + tally.programs);
    add(tally, tally_);
  }

  void count_death(uint64_t number, const ChildEnd& end) {
    const Difference death = death_of(end);
    ++tally_.programs;
    ++tally_.differ;
    fuzz::add(death.kind, {.count = 1, .programs = {number}, .detail = death.detail},
              tally_.differences);
  }

  SessionOptions options_;
  const Compiler& compiler_;
  uint64_t next_;
  Tally tally_;
  SharedNumber current_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Verdict run_isolated(const Program& program, const Compiler& compiler) {
  const ChildEnd end = run_in_child([&] {
    const Verdict verdict = run_program(program, compiler);
    nlohmann::ordered_json json;
    if (verdict.difference) {
      json = {{"kind", verdict.difference->kind}, {"detail", verdict.difference->detail}};
    }
    return to_text(json);
  });
  Verdict verdict;
  if (!end.text) {
    verdict.difference = death_of(end);
  } else if (const auto json = nlohmann::json::parse(*end.text); !json.is_null()) {
    verdict.difference = {.kind = json["kind"], .detail = json["detail"], .is_weak = false};
  }
  return verdict;
}

std::optional<size_t> find_isolated(const std::vector<Program>& programs, const std::string& kind,
                                    const Compiler& compiler) {
  SharedNumber current;
  for (size_t first = 0; first < programs.size(); first = current.get() + 1) {
    const ChildEnd end = run_in_child([&] {
      for (size_t i = first; i < programs.size(); ++i) {
        current.set(i);
        if (shows(programs[i], kind, compiler)) return std::string("found");
      }
      return std::string("none");
    });
    if (end.text == "none") return std::nullopt;
    if (end.text || death_of(end).kind == kind) return current.get();
  }
  return std::nullopt;
}

Tally run_isolated_session(const SessionOptions& options, const Compiler& compiler,
                           const std::function<void(const Tally&)>& between) {
  return IsolatedSession(options, compiler).run(between);
}

}  // namespace foregrad::cli::fuzz
