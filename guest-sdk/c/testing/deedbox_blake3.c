/* The hash behind the keys, compiled without code for one processor only. */

#define BLAKE3_NO_SSE2 1
#define BLAKE3_NO_SSE41 1
#define BLAKE3_NO_AVX2 1
#define BLAKE3_NO_AVX512 1
#define BLAKE3_USE_NEON 0
#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "../third_party/blake3/blake3.c"
#include "../third_party/blake3/blake3_dispatch.c"
#include "../third_party/blake3/blake3_portable.c"
