//go:build wasip1

// Package runtime is what the generated bindings need at run time: memory for what the host writes, and handles.
//
// The host may call cabi_realloc while a call of this component is under way. Nothing in it may call the host, and the
// collector of Go reads the clock; so what the host writes lies in an arena that Go's allocator knows nothing of, as long
// as it fits.
package runtime

import (
	"runtime"
	"slices"
	"unsafe"
)

const arenaBytes = 1 << 20

var (
	arena [arenaBytes]byte
	// The part of the arena that is in use.
	used uint32
	// The part that stays in use: WASI's adapter keeps its state there, from before Go has started.
	base uint32
	// Calls whose results are being read. They nest when a goroutine takes over while another one reads.
	reading int
	// What did not fit into the arena.
	large [][]uint64
)

func init() {
	base = used
}

// Begin comes before a call of the host whose results lie in the arena, or before what the host wrote for a call of its
// own is read.
func Begin() {
	reading++
}

// End comes when all of it was read: the arena is free again.
func End() {
	reading--
	if reading == 0 {
		used = base
		large = nil
	}
}

// Bytes gives what the host wrote as bytes that stay.
func Bytes(written []byte) []byte {
	if len(written) == 0 || !inArena(unsafe.SliceData(written)) {
		return written
	}
	return slices.Clone(written)
}

// Text gives what the host wrote as a string that stays.
func Text(written string) string {
	if written == "" || !inArena(unsafe.StringData(written)) {
		return written
	}
	return string(unsafe.Slice(unsafe.StringData(written), len(written)))
}

func inArena(at *byte) bool {
	return uintptr(unsafe.Pointer(at))-uintptr(unsafe.Pointer(&arena)) < arenaBytes
}

// Allocate makes memory that the host reads, aligned to 8 bytes. It stays as long as it is pinned.
func Allocate(pinner *runtime.Pinner, size, _ uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	memory := unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	pinner.Pin(memory)
	return memory
}

// Unpin is called when the arguments of an export were lifted. They are read until the export's own End.
func Unpin() {}

// Before Go has started there is no goroutine whose stack could grow.
//
//go:nosplit
//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldBytes, align, bytes uint32) unsafe.Pointer {
	start := (used + align - 1) &^ (align - 1)
	if old != nil || bytes > arenaBytes || start > arenaBytes-bytes {
		return reallocLarge(old, oldBytes, bytes)
	}
	used = start + bytes
	return unsafe.Add(unsafe.Pointer(&arena), start)
}

func reallocLarge(old unsafe.Pointer, oldBytes, bytes uint32) unsafe.Pointer {
	pauseClock(true)
	memory := make([]uint64, (uint64(bytes)+7)/8)
	large = append(large, memory)
	start := unsafe.Pointer(unsafe.SliceData(memory))
	copy(unsafe.Slice((*byte)(start), bytes), unsafe.Slice((*byte)(old), min(oldBytes, bytes)))
	pauseClock(false)
	return start
}

// pauseClock makes WASI's adapter answer questions for the time by itself, for the collector asks them.
//
//go:wasmimport wasi_snapshot_preview1 adapter_monotonic_clock_set_paused
func pauseClock(paused bool)
