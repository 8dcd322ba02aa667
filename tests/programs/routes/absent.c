/* A program that probes for CUDA where there is none must not find it. */
#include <dlfcn.h>
#include <stdio.h>

#pragma weak cuInit
#pragma weak nvmlInit_v2
int cuInit(unsigned int flags);
int nvmlInit_v2(void);

int main(void)
{
    printf("default=%d\n", dlsym(RTLD_DEFAULT, "cuInit") || dlsym(RTLD_DEFAULT, "cuGetProcAddress") ||
                               dlsym(RTLD_DEFAULT, "nvmlInit_v2") || dlsym(RTLD_NEXT, "cuInit"));
    printf("weak=%d\n", (cuInit != 0) + (nvmlInit_v2 != 0));
    return 0;
}
