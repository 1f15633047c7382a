# What a Makefile needs to compile and test an activity with the machine's own compiler. Set DEEDBOX_SDK to this folder first.
#   DEEDBOX_CFLAGS        flags for every source
#   DEEDBOX_SOURCES       the SDK
#   DEEDBOX_TEST_SOURCES  the SDK with the fake context, for unit tests

DEEDBOX_CFLAGS := -std=c11 -I$(DEEDBOX_SDK)/include
DEEDBOX_SOURCES := $(wildcard $(DEEDBOX_SDK)/src/*.c)
DEEDBOX_TEST_SOURCES := $(DEEDBOX_SOURCES) $(wildcard $(DEEDBOX_SDK)/testing/*.c)
DEEDBOX_TEST_DEPENDENCIES := $(DEEDBOX_TEST_SOURCES) $(wildcard $(addprefix $(DEEDBOX_SDK)/,include/*.h src/*.h testing/*.h))

ifdef SANITIZE
DEEDBOX_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
