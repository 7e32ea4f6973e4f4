// The random numbers that programs are drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace foregrad::cli::fuzz {

/// Draws numbers that depend on the seed alone, not on the platform: SplitMix64 (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// Starts the stream of one program of a seed.
  Random(uint64_t seed, uint64_t program) : state_(seed) { state_ = next() ^ (program * kStep); }

  uint64_t next() {
    uint64_t mixed = state_ += kStep;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  /// Draws from 0 to `end`, exclusive; `end` is positive.
  int64_t below(int64_t end) { return static_cast<int64_t>(next() % static_cast<uint64_t>(end)); }

  /// Draws from `first` to `last`, both inclusive.
  int64_t between(int64_t first, int64_t last) { return first + below(last - first + 1); }

  bool chance(int percent) { return below(100) < percent; }

  template <class List>
  auto& one_of(List& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<int64_t>(list.size())));
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  uint64_t state_;
};

}  // namespace foregrad::cli::fuzz
