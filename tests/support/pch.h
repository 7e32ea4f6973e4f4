// What every test includes, compiled once (cmake/Tests.cmake). Tests still include what they use.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
