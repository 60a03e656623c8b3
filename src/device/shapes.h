// The sizes (n,T,d) whose runs keep their keys in registers. Read several times, with ATTSVM_SHAPE(N,T,D) defined each
// time; sizes in between run by run_any.
ATTSVM_SHAPE(6, 8, 10)
