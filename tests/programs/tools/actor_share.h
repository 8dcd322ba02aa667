/*
 * The actor's commands for memory that two processes know, or one process by two names, and for sparse arrays.
 *
 *   export B A                 the handle in A as an open file in B
 *   import B A                 a handle in B for the file in A
 *   import-of B PID FILE       the same for the file of another process, which is opened and closed for it
 *   close A                    closes the file
 *   ipc A, pool-pointer A      puts what names the memory at address A into a file that another actor of the same run
 *                              can read
 *   cuIpcOpenMemHandle B, cuIpcOpenMemHandle_v2 B, cuIpcCloseMemHandle A
 *   pool-shared A              a pool on card 0 that can be shared
 *   pool-export B A, pool-import B PID FILE, pool-pointer-of B A: the pointer, by way of the pool in A
 *   sparse B TILES             a sparse array of that many tiles in a row
 *   tiles B A FIRST COUNT      memory of handle A behind tiles of array B; empty B FIRST COUNT
 *   tiles-and-bad B A FIRST COUNT: the same in a batch with another map that the driver refuses
 *   multicast M BYTES          a multicast object; bind M A BYTES, unbind M BYTES: memory of handle A, at its beginning
 */
#ifndef ACTOR_SHARE_H
#define ACTOR_SHARE_H

#include <fcntl.h>

/* From 11.2 and 11.1 on; the header has neither. */
typedef struct { char reserved[64]; } share_data;
typedef struct {
    int resource_type;
    uint64_t resource;
    int subresource_type;
    uint64_t level_and_layer;
    unsigned int offset[3], extent[3];
    int operation, handle_type;
    uint64_t handle, offset_in_memory;
    unsigned int devices, flags, reserved[2];
} array_map;
_Static_assert(sizeof(array_map) == 96, "CUarrayMapInfo");

#define TILE 128
#define TILE_BYTES (64 << 10)

static void *named(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

/* What names memory, on its way from one actor to another. */
static int keep_data(const char *file, const share_data *data)
{
    FILE *to = fopen(file, "w");
    int bad = !to || fwrite(data, sizeof *data, 1, to) != 1;
    return (to && fclose(to)) || bad;
}

static int take_data(const char *file, share_data *data)
{
    FILE *from = fopen(file, "r");
    int bad = !from || fread(data, sizeof *data, 1, from) != 1;
    return (from && fclose(from)) || bad;
}

static int file_of(uint64_t pid, uint64_t number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/fd/%" PRIu64, pid, number);
    return open(path, O_RDWR | O_CLOEXEC);
}

static CUresult export_file(uint64_t *file, uint64_t handle)
{
    int number = -1;
    CUresult result = call_cuMemExportToShareableHandle(&number, handle, 1, 0);
    *file = result ? *file : (uint64_t)number;
    return result;
}

static CUresult import_of(uint64_t *handle, int file)
{
    CUresult result = call_cuMemImportFromShareableHandle(handle, (void *)(intptr_t)file, 1);
    close(file);
    return result;
}

static CUresult ipc(uint64_t pointer)
{
    CUipcMemHandle handle;
    CUresult result = call_cuIpcGetMemHandle(&handle, pointer);
    return result ? result : (CUresult)(keep_data("ipc", (share_data *)&handle) ? 9998 : 0);
}

static CUresult ipc_open(const char *name, uint64_t *pointer)
{
    CUipcMemHandle handle;
    if (take_data("ipc", (share_data *)&handle))
        return 9998;
    return ((cuIpcOpenMemHandle_v2_fn)named(name))(pointer, handle, 1);
}

static CUresult pool_shared(uint64_t *pool)
{
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = 1,
                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    return call_cuMemPoolCreate((CUmemoryPool *)pool, &props);
}

static CUresult pool_export(uint64_t *file, uint64_t pool)
{
    int number = -1;
    CUresult (*call)(void *, uint64_t, int, uint64_t) = named("cuMemPoolExportToShareableHandle");
    CUresult result = call(&number, pool, 1, 0);
    *file = result ? *file : (uint64_t)number;
    return result;
}

static CUresult pool_import(uint64_t *pool, int file)
{
    CUresult (*call)(uint64_t *, void *, int, uint64_t) = named("cuMemPoolImportFromShareableHandle");
    CUresult result = call(pool, (void *)(intptr_t)file, 1, 0);
    close(file);
    return result;
}

static CUresult pool_pointer(uint64_t pointer)
{
    share_data data;
    CUresult (*call)(share_data *, uint64_t) = named("cuMemPoolExportPointer");
    CUresult result = call(&data, pointer);
    return result ? result : (CUresult)(keep_data("pointer", &data) ? 9998 : 0);
}

static CUresult pool_pointer_of(uint64_t *pointer, uint64_t pool)
{
    share_data data;
    CUresult (*call)(uint64_t *, uint64_t, share_data *) = named("cuMemPoolImportPointer");
    return take_data("pointer", &data) ? 9998 : call(pointer, pool, &data);
}

static CUresult sparse(uint64_t *array, uint64_t tiles)
{
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = tiles * TILE, .Height = TILE, .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 1, .Flags = 0x40 };
    return call_cuArray3DCreate_v2((CUarray *)array, &form);
}

static CUresult map_tiles(const char *name, uint64_t array, uint64_t handle, uint64_t first, uint64_t count)
{
    array_map map = { .resource = array, .offset = { (unsigned int)first * TILE }, .devices = 1,
                      .extent = { (unsigned int)count * TILE, TILE, 1 }, .operation = handle ? 1 : 2,
                      .handle = handle };
    CUresult (*call)(array_map *, unsigned int, CUstream) = named(name);
    return call(&map, 1, NULL);
}

static CUresult map_tiles_and_bad(uint64_t array, uint64_t handle, uint64_t first, uint64_t count)
{
    array_map map = { .resource = array, .offset = { (unsigned int)first * TILE }, .devices = 1,
                      .extent = { (unsigned int)count * TILE, TILE, 1 }, .operation = handle ? 1 : 2,
                      .handle = handle };
    array_map maps[2] = { map, map };
    CUresult (*call)(array_map *, unsigned int, CUstream) = named("cuMemMapArrayAsync");
    maps[1].flags = 1;
    return call(maps, 2, NULL);
}

static CUresult multicast(uint64_t *object, uint64_t bytes)
{
    struct { unsigned int devices; size_t bytes; uint64_t types, flags; } prop = { 1, bytes, 0, 0 };
    CUresult (*call)(uint64_t *, void *) = named("cuMulticastCreate");
    CUresult (*add)(uint64_t, int) = named("cuMulticastAddDevice");
    CUresult result = call(object, &prop);
    return result ? result : add(*object, 0);
}

static CUresult bind_memory(uint64_t object, uint64_t memory, uint64_t bytes)
{
    CUresult (*call)(uint64_t, size_t, uint64_t, size_t, size_t, uint64_t) = named("cuMulticastBindMem");
    return call(object, 0, memory, 0, bytes, 0);
}

static CUresult unbind_memory(uint64_t object, uint64_t bytes)
{
    CUresult (*call)(uint64_t, int, size_t, size_t) = named("cuMulticastUnbind");
    return call(object, 0, 0, bytes);
}

/* What the stub's own book says of card 0: in use now, and the most that ever was. */
static CUresult truth(uint64_t *used)
{
    *used = ((uint64_t(*)(unsigned int))named("stubUsed"))(0);
    extra = ((uint64_t(*)(unsigned int))named("stubPeak"))(0);
    return 0;
}

/* Levels of an array of this many bytes, in rows of one MiB. */
static CUresult mipmap_levels(uint64_t *slot, uint64_t bytes, unsigned int levels)
{
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = 1 << 20, .Height = bytes >> 20, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                     .NumChannels = 1 };
    return call_cuMipmappedArrayCreate((CUmipmappedArray *)slot, &form, levels);
}

/* False if the verb is none of these. */
static int obey_share(CUresult *result, const char *verb, uint64_t *slot, uint64_t *from, uint64_t first,
                      uint64_t second)
{
#define COMMAND(word, call) if (strcmp(verb, word) == 0) return *result = (call), 1;
    COMMAND("truth", truth(slot))
    COMMAND("mipmap-levels", mipmap_levels(slot, first, (unsigned int)second))
    COMMAND("export", export_file(slot, *from))
    COMMAND("import", call_cuMemImportFromShareableHandle(slot, (void *)*from, 1))
    COMMAND("import-of", import_of(slot, file_of(first, second)))
    COMMAND("close", (CUresult)close((int)*slot))
    COMMAND("pid", (*slot = (uint64_t)getpid(), 0))
    COMMAND("ipc", ipc(*slot))
    COMMAND("cuIpcOpenMemHandle", ipc_open(verb, slot))
    COMMAND("cuIpcOpenMemHandle_v2", ipc_open(verb, slot))
    COMMAND("cuIpcCloseMemHandle", call_cuIpcCloseMemHandle(*slot))
    COMMAND("pool-shared", pool_shared(slot))
    COMMAND("pool-export", pool_export(slot, *from))
    COMMAND("pool-import", pool_import(slot, file_of(first, second)))
    COMMAND("pool-pointer", pool_pointer(*slot))
    COMMAND("pool-pointer-of", pool_pointer_of(slot, *from))
    COMMAND("sparse", sparse(slot, first))
    COMMAND("tiles", map_tiles("cuMemMapArrayAsync", *slot, *from, first, second))
    COMMAND("tiles-and-bad", map_tiles_and_bad(*slot, *from, first, second))
    COMMAND("empty-and-bad", map_tiles_and_bad(*slot, 0, first, second))
    COMMAND("tiles_ptsz", map_tiles("cuMemMapArrayAsync_ptsz", *slot, *from, first, second))
    COMMAND("multicast", multicast(slot, first))
    COMMAND("bind", bind_memory(*slot, *from, first))
    COMMAND("unbind", unbind_memory(*slot, first))
    COMMAND("empty", map_tiles("cuMemMapArrayAsync", *slot, 0, first, second))
#undef COMMAND
    return 0;
}

#endif
