#include "program.h"

int main(int argc, char** argv) { return attsvm::run_program(argc, argv); }
