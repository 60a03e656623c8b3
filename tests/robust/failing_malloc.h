#pragma once

// malloc and its kin as they are, but for chosen requests that they refuse. Linked into a test program, or put before
// the C library by LD_PRELOAD; then ATTSVM_FAIL_AT and ATTSVM_FAIL_COUNT say which, counted from main on.
extern "C" {
/// Refuses `count` requests, the first of them number `at` from now on; at = 0: none. All threads count together.
void failing_malloc_refuse(long at, long count);
/// Requests since failing_malloc_refuse, those that were refused included.
long failing_malloc_requests();
}
