/* Device memory for test programs: the driver's library, loaded from a file,
 * and copies between host memory and device memory. */
#ifndef DEVICE_H
#define DEVICE_H

#include "check.h"
#include <dlfcn.h>
#include <stdint.h>

typedef uint64_t address;

static struct {
    int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*set_current)(void *);
    int (*alloc)(address *, size_t), (*alloc_managed)(address *, size_t, unsigned), (*release)(address);
    int (*alloc_async)(address *, size_t, void *), (*map)(address *, size_t, int);
    int (*to_host)(void *, address, size_t), (*to_device)(address, const void *, size_t);
} cuda;

static void *cuda_library;

#define FUNCTION(field, name) (*(void **)&cuda.field = dlsym(cuda_library, name))

/* Loads the driver's library without calling it. */
__attribute__((unused)) static void load_cuda(const char *file)
{
    cuda_library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    CHECK(cuda_library, "%s", dlerror());
    FUNCTION(init, "cuInit"), FUNCTION(device_get, "cuDeviceGet"), FUNCTION(retain, "cuDevicePrimaryCtxRetain");
    FUNCTION(set_current, "cuCtxSetCurrent"), FUNCTION(alloc, "cuMemAlloc_v2"), FUNCTION(alloc_managed, "cuMemAllocManaged");
    FUNCTION(release, "cuMemFree_v2"), FUNCTION(alloc_async, "cuMemAllocAsync"), FUNCTION(map, "fakeMap");
    FUNCTION(to_host, "cuMemcpyDtoH_v2"), FUNCTION(to_device, "cuMemcpyHtoD_v2");
    CHECK(cuda.init && cuda.retain && cuda.set_current && cuda.alloc && cuda.to_host && cuda.to_device, "%s lacks functions", file);
}

/* Makes the first device current in this thread. */
__attribute__((unused)) static void use_device(void)
{
    void *context;
    int device;
    CHECK(!cuda.init(0) && !cuda.device_get(&device, 0) && !cuda.retain(&context, device) && !cuda.set_current(context), "no device");
}

__attribute__((unused)) static void *device_memory(size_t length)
{
    address at;
    int code = cuda.alloc(&at, length);
    CHECK(code == 0, "cuMemAlloc returned %d", code);
    return (void *)(uintptr_t)at;
}

__attribute__((unused)) static void *managed_memory(size_t length)
{
    address at;
    int code = cuda.alloc_managed(&at, length, 1);
    CHECK(code == 0, "cuMemAllocManaged returned %d", code);
    return (void *)(uintptr_t)at;
}

__attribute__((unused)) static void put(void *to, const void *from, size_t length)
{
    int code = cuda.to_device((address)(uintptr_t)to, from, length);
    CHECK(code == 0, "cuMemcpyHtoD returned %d", code);
}

__attribute__((unused)) static void get(void *to, const void *from, size_t length)
{
    int code = cuda.to_host(to, (address)(uintptr_t)from, length);
    CHECK(code == 0, "cuMemcpyDtoH returned %d", code);
}

__attribute__((unused)) static void discard(void *at)
{
    int code = cuda.release((address)(uintptr_t)at);
    CHECK(code == 0, "cuMemFree returned %d", code);
}

/* Returns new device memory that contains the byte pattern of `salt`. */
__attribute__((unused)) static void *device_pattern(size_t length, unsigned salt)
{
    char *host = malloc(length), *device = device_memory(length);
    fill(host, length, salt);
    put(device, host, length);
    free(host);
    return device;
}

/* Returns the index of the first byte of device memory that differs from the pattern, or -1. */
__attribute__((unused)) static long device_differs(const void *device, size_t length, unsigned salt)
{
    char *host = malloc(length);
    get(host, device, length);
    long at = differs(host, length, salt);
    free(host);
    return at;
}

#endif
