#pragma once

// All public headers of attsvm.
#include "attsvm/array.h"
#include "attsvm/audit.h"
#include "attsvm/capacity.h"
#include "attsvm/device.h"
#include "attsvm/error.h"
#include "attsvm/experiments.h"
#include "attsvm/files.h"
#include "attsvm/generate.h"
#include "attsvm/graph.h"
#include "attsvm/hierarchy.h"
#include "attsvm/margin.h"
#include "attsvm/next_token.h"
#include "attsvm/norm.h"
#include "attsvm/positions.h"
#include "attsvm/report.h"
#include "attsvm/selector.h"
#include "attsvm/stack.h"
#include "attsvm/stack_files.h"
#include "attsvm/task.h"
#include "attsvm/theory.h"
#include "attsvm/threads.h"
#include "attsvm/train.h"
#include "attsvm/verify.h"
#include "attsvm/version.h"

/// Tasks, their SVMs, training, and what connects them.
namespace attsvm {}
