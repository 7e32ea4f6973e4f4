#include "capture/written_memory.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>

#include "capture/keys.h"
#include "capture/trace_tensor.h"
#include "graph/graph.h"
#include "graph/refusal.h"
#include "ops/constant.h"

namespace foregrad {

namespace {

constexpr int64_t kMaxElements = 1 << 14;

/// What nobody writes by chance.
void mark(const at::Tensor& elements) {
  auto* bytes = static_cast<unsigned char*>(elements.mutable_data_ptr());
  for (size_t i = 0; i < elements.nbytes(); ++i)
    bytes[i] = static_cast<unsigned char>(0xA5U + 73U * i);
}

bool is_marked(const at::Tensor& elements) {
  const auto* bytes = static_cast<const unsigned char*>(elements.const_data_ptr());
  for (size_t i = 0; i < elements.nbytes(); ++i) {
    if (bytes[i] != static_cast<unsigned char>(0xA5U + 73U * i)) return false;
  }
  return true;
}

}  // namespace

void WrittenMemory::hand(const c10::Storage& storage, void* data) {
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(data, at::kCPU));
  if (!data) forbid_data(storage);
}

WrittenMemory::~WrittenMemory() {
  for (const Given& given : given_) hand(given.storage, nullptr);
}

void WrittenMemory::give(const at::Tensor& stand_in, size_t index) {
  const bool fits = stand_in.numel() > 0 && stand_in.numel() <= kMaxElements &&
                    stand_in.is_contiguous() && stand_in.storage_offset() == 0;
  if (!fits) return;
  const BelowTracingScope below;
  at::Tensor elements =
      at::empty(stand_in.sizes(), at::TensorOptions(stand_in.scalar_type()).device(at::kCPU));
  mark(elements);
  hand(stand_in.storage(), elements.mutable_data_ptr());
  given_.push_back({.storage = stand_in.storage(), .elements = std::move(elements), .op = index});
}

void WrittenMemory::take_back(Given& given, std::vector<RecordedOp>& ops) {
  if (given.as_taken.defined()) return;
  const BelowTracingScope below;
  given.as_taken = given.elements.clone();
  hand(given.storage, nullptr);
  if (is_marked(given.elements)) return;
  ConstantCall constant = constant_call(given.elements);
  ops[given.op].op = constant.op;
  ops[given.op].args = {constant.args.begin(), constant.args.end()};
}

void WrittenMemory::take_back(const at::Tensor& stand_in, std::vector<RecordedOp>& ops) {
  for (Given& given : given_) {
    if (given.storage.is_alias_of(stand_in.storage())) take_back(given, ops);
  }
}

void WrittenMemory::finish(std::vector<RecordedOp>& ops) {
  for (Given& given : given_) {
    take_back(given, ops);
    if (std::memcmp(given.elements.const_data_ptr(), given.as_taken.const_data_ptr(),
                    given.elements.nbytes()) == 0)
      continue;
    throw Refusal(fmt::format(
        "a tensor `{}` is filled by `data_ptr` or an accessor after an operator took it. Expected "
        "it to be filled before, or to be written by operators.",
        to_text(type_of(given.elements))));
  }
}

}  // namespace foregrad
