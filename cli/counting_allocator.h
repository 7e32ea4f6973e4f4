// Counting the memory of tensors.
//
// The question: how many bytes does a step need at most? Peak resident memory answers for the whole
// process and never falls, and two networks that train by turns in one process would share it. So a
// `c10` allocator counts instead. Each block is charged to the account that is open when it is
// allocated, carries that account in a header of 64 bytes in front of it, and is taken off that
// account when it is freed, whoever frees it and whenever. Whatever an owner keeps between steps,
// pooled arenas included, thus stays on its account. Not counted: the header, and scratch memory
// that oneDNN and MKL take from elsewhere.
#pragma once

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace foregrad::cli {

/// Counts the bytes of the blocks charged to it. Must live as long as any of them.
class MemoryAccount {
 public:
  int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

  /// Starts a new peak from what is live now.
  void reset_peak() { peak_.store(live_bytes(), std::memory_order_relaxed); }

  void charge(size_t bytes);
  void release(size_t bytes);

 private:
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

/// Returns a new account, which lives as long as the process.
MemoryAccount& open_memory_account();

/// Replaces libtorch's CPU allocator by a counting one that delegates to it; the second call and
/// later ones do nothing. Blocks allocated before keep their own deleter. Call before other threads
/// allocate.
void install_counting_allocator();

/// Charges what any thread allocates to an account while it lives, then returns to the account
/// before it. Libtorch allocates on its worker threads too, so the open account is a property of
/// the process, not of the thread.
class ChargeTo {
 public:
  explicit ChargeTo(MemoryAccount& account);
  ~ChargeTo();
  ChargeTo(const ChargeTo&) = delete;
  ChargeTo& operator=(const ChargeTo&) = delete;

 private:
  MemoryAccount* previous_;
};

}  // namespace foregrad::cli
