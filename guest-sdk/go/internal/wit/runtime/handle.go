package runtime

// Handle is a resource of the host that this component holds; 0 when it was given away or dropped.
type Handle struct {
	value int32
}

func MakeHandle(value int32) *Handle { return &Handle{value} }

// Use gives the handle and keeps it.
func (h *Handle) Use() int32 {
	if h.value == 0 {
		panic("a resource of the host was used after it was given away")
	}
	return h.value
}

// Take gives the handle away.
func (h *Handle) Take() int32 {
	value := h.Use()
	h.value = 0
	return value
}

// TakeOrNil gives the handle away; 0 when there is none.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

// Set puts a handle where there is none.
func (h *Handle) Set(value int32) { h.value = value }

// NoCleanup leaves a resource to its explicit Drop. A collector that dropped it would call the host at any time, and a
// parent before its child.
func NoCleanup[T, S any](*T, func(S), S) {}
