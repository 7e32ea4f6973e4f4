// What the tests of most rooms include, compiled once (cmake/Tests.cmake).
// Tests still include what they use.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
