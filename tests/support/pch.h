// What most tests include, compiled once (cmake/Tests.cmake). Tests still include what they use.
//
// Each file that loads it instantiates its templates anew: 1.7 s for these, 3.8 s for all of
// libtorch.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
