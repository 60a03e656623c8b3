#include "program.h"

int main(int argc, char** argv) { return attsvm::internal::run_program(argc, argv); }
