// Includes Arb, which is a part of FLINT from FLINT 3 on and a library of its own before.
#pragma once

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#include <flint/arb_mat.h>
#else
#include <arb.h>
#include <arb_mat.h>
#endif
