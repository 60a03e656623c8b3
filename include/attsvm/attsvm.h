#pragma once

// Everything, in the order in which it builds on itself.
#include "attsvm/array.h"
#include "attsvm/error.h"
#include "attsvm/generate.h"
#include "attsvm/head.h"
#include "attsvm/npz.h"
#include "attsvm/output.h"
#include "attsvm/random.h"
#include "attsvm/safetensors.h"
#include "attsvm/score.h"
#include "attsvm/selection.h"
#include "attsvm/separability.h"
#include "attsvm/simd.h"
#include "attsvm/task.h"
#include "attsvm/task_file.h"
#include "attsvm/threads.h"
#include "attsvm/version.h"
