/* A library to link with: the names of the driver, and no code. At run time the world's own library takes its place. */
#include "driver.h"

#define NAME(name, parameters) __asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n");
FUNCTIONS(NAME)
