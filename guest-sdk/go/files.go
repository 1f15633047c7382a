package deedbox

// Files are whole files, in directories that the operator has granted. The host claims each write first, and puts the file
// in place at once. Nothing here reads or deletes.
type Files struct {
	host Host
}

// Written says how a file came to be.
type Written struct {
	Source Source
	// EffectID is 64 hexadecimal digits.
	EffectID string
}

// Write begins the write of a whole file. The first segment of the path names the granted directory:
// exports/2026/orders.csv.
func (f Files) Write(path string, content []byte) *FileWrite {
	return &FileWrite{host: f.host, path: path, content: content}
}

// Append is always refused, with the reason: an append that is made twice writes twice. Write a file of its own for each
// run, for example one named by Context.IdempotencyKey.
func (f Files) Append(path string, content []byte) error {
	return f.host.Append(path, content)
}

// FileWrite is a write that is not made until Send is called.
type FileWrite struct {
	host     Host
	path     string
	content  []byte
	identity Identity
}

// Effect names this effect, 1 to 256 bytes, unique in this run. An unnamed one is known by its path and its order.
func (w *FileWrite) Effect(name string) *FileWrite {
	w.identity = Identity{Kind: ByName, Name: name}
	return w
}

// BusinessEffect names this effect by the business itself, for example ("export", day): two runs that name the same
// operation and key share one write.
func (w *FileWrite) BusinessEffect(operation, key string) *FileWrite {
	w.identity = Identity{Kind: ByBusiness, Operation: operation, Key: key}
	return w
}

// Send writes the file, or answers from the ledger. Readers see the old file or the new one, never a part.
func (w *FileWrite) Send() (*Written, error) {
	return w.host.Write(w.path, w.content, w.identity)
}
