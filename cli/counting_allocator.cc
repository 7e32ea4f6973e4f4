#include "cli/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>

#include <deque>
#include <mutex>
#include <new>

namespace foregrad::cli {
namespace {

constexpr size_t kHeaderBytes = 64;

struct Header {
  MemoryAccount* account;  // null: allocated while no account was open
  size_t bytes;
};
static_assert(sizeof(Header) <= kHeaderBytes && kHeaderBytes % c10::gAlignment == 0);

std::atomic<MemoryAccount*> open_account{nullptr};

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &free_block, c10::Device(c10::DeviceType::CPU)};
    }
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= SIZE_MAX - kHeaderBytes, "cannot allocate ", bytes,
                     " bytes.");
    auto* block =
        static_cast<std::byte*>(c10::GetDefaultCPUAllocator()->raw_allocate(bytes + kHeaderBytes));
    MemoryAccount* account = open_account.load(std::memory_order_relaxed);
    new (block) Header{account, bytes};
    if (account != nullptr) {
      account->charge(bytes);
    }
    std::byte* data = block + kHeaderBytes;
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void free_block(void* data) {
    if (data == nullptr) {
      return;
    }
    std::byte* block = static_cast<std::byte*>(data) - kHeaderBytes;
    const Header header = *std::launder(reinterpret_cast<Header*>(block));
    if (header.account != nullptr) {
      header.account->release(header.bytes);
    }
    c10::GetDefaultCPUAllocator()->raw_deallocate(block);
  }
};

}  // namespace

void MemoryAccount::charge(size_t bytes) {
  const int64_t live = live_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) +
                       static_cast<int64_t>(bytes);
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < live && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void MemoryAccount::release(size_t bytes) {
  live_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

MemoryAccount& open_memory_account() {
  static std::mutex mutex;
  static auto* accounts = new std::deque<MemoryAccount>;  // not destroyed before their blocks
  const std::lock_guard lock(mutex);
  return accounts->emplace_back();
}

void install_counting_allocator() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    // Never freed: blocks may outlive every other static object.
    c10::SetCPUAllocator(new CountingAllocator, /*priority=*/255);
  });
}

ChargeTo::ChargeTo(MemoryAccount& account) : previous_(open_account.exchange(&account)) {}

ChargeTo::~ChargeTo() { open_account.store(previous_); }

}  // namespace foregrad::cli
