#include "cli/counting_allocator.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace foregrad::cli {
namespace {

class CountingAllocatorTest : public ::testing::Test {
 protected:
  CountingAllocatorTest() { install_counting_allocator(); }

  MemoryAccount& account_ = open_memory_account();
};

TEST_F(CountingAllocatorTest, CountsLiveAndPeak) {
  const ChargeTo charge(account_);
  at::Tensor a = at::empty({256}, at::kFloat);
  EXPECT_EQ(account_.live_bytes(), 1024);
  {
    const at::Tensor b = at::empty({100}, at::kByte);
    EXPECT_EQ(account_.live_bytes(), 1124);
  }
  EXPECT_EQ(account_.live_bytes(), 1024);
  EXPECT_EQ(account_.peak_bytes(), 1124);
  account_.reset_peak();
  EXPECT_EQ(account_.peak_bytes(), 1024);
  a.reset();
  EXPECT_EQ(account_.live_bytes(), 0);
}

TEST_F(CountingAllocatorTest, ChargesTheAccountThatWasOpenAtAllocation) {
  MemoryAccount& other = open_memory_account();
  at::Tensor a;
  {
    const ChargeTo charge(account_);
    a = at::empty({16}, at::kByte);
    {
      const ChargeTo inner(other);
      a = at::empty({32}, at::kByte);  // frees the 16 bytes while `other` is open
    }
    EXPECT_EQ(account_.live_bytes(), 0);
    const at::Tensor b = at::empty({8}, at::kByte);
    EXPECT_EQ(account_.live_bytes(), 8);
  }
  EXPECT_EQ(other.live_bytes(), 32);
  const at::Tensor uncounted = at::empty({64}, at::kByte);
  EXPECT_EQ(account_.live_bytes(), 0);
  EXPECT_EQ(account_.peak_bytes(), 16);
}

TEST_F(CountingAllocatorTest, CountsResizedStorageAndOtherThreads) {
  const ChargeTo charge(account_);
  at::Tensor a = at::empty({4}, at::kByte);
  a.resize_({400});
  EXPECT_EQ(account_.live_bytes(), 400);
  std::thread([] { const at::Tensor b = at::empty({1000}, at::kByte); }).join();
  EXPECT_EQ(account_.live_bytes(), 400);
  EXPECT_EQ(account_.peak_bytes(), 1400);
}

TEST_F(CountingAllocatorTest, KeepsAlignmentAndEmptyBlocks) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at::empty({3}, at::kByte).data_ptr()) % 64, 0u);
  EXPECT_EQ(at::empty({0}).data_ptr(), nullptr);
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* block = allocator->raw_allocate(10);
  allocator->raw_deallocate(block);
  allocator->raw_deallocate(nullptr);
}

TEST_F(CountingAllocatorTest, RefusesAbsurdSizes) {
  EXPECT_THROW((void)c10::GetCPUAllocator()->allocate(SIZE_MAX - 1), c10::Error);
}

TEST_F(CountingAllocatorTest, ClonesContents) {
  const at::Tensor a = at::arange(10);
  const c10::DataPtr copy = c10::GetCPUAllocator()->clone(a.const_data_ptr(), 80);
  EXPECT_EQ(std::memcmp(copy.get(), a.const_data_ptr(), 80), 0);
}

}  // namespace
}  // namespace foregrad::cli
