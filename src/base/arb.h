// Arb, which is a library beside FLINT before FLINT 3 and a part of it from then on.
#pragma once

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#include <flint/arb_mat.h>
#else
#include <arb.h>
#include <arb_mat.h>
#endif
