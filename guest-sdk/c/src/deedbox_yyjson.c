/* The JSON library, compiled with what is needed of it. */

#define YYJSON_DISABLE_UTILS 1
#define YYJSON_DISABLE_NON_STANDARD 1
#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#endif
#include "../third_party/yyjson/yyjson.c"
