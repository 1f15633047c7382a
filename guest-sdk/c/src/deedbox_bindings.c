/* What wit-bindgen made of the WIT world, compiled for wasm only. */

#ifdef __wasm__

#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#endif
#include "../generated/activity.c"

/* The world's type is put into the component when it is made, not by a linked object file. */
void __component_type_object_force_link_activity(void);
void __component_type_object_force_link_activity(void)
{
}

#else

/* C has no empty files. */
extern int deedbox_bindings_are_for_wasm;

#endif
