package deedboxtest

import (
	"encoding/binary"
	"math/bits"
)

// The part of BLAKE3 that keys need: derive_key for a context and key material of at most one chunk each, 32 bytes out.
// The vectors in key-vectors.json hold it to the host's own.

const (
	blockBytes = 64
	chunkBytes = 1024

	chunkStart        = 1 << 0
	chunkEnd          = 1 << 1
	root              = 1 << 3
	deriveKeyContext  = 1 << 5
	deriveKeyMaterial = 1 << 6
)

var iv = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

var permutation = [16]int{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8}

func deriveKey(context string, material []byte) [32]byte {
	key := hashChunk(iv, []byte(context), deriveKeyContext)
	words := hashChunk(key, material, deriveKeyMaterial)
	var out [32]byte
	for i, word := range words {
		binary.LittleEndian.PutUint32(out[4*i:], word)
	}
	return out
}

func hashChunk(key [8]uint32, input []byte, flags uint32) [8]uint32 {
	if len(input) > chunkBytes {
		panic("deedboxtest: key material is longer than a run id and a name can be")
	}
	chaining, start := key, uint32(chunkStart)
	for len(input) > blockBytes {
		chaining = compress(chaining, input[:blockBytes], flags|start)
		input, start = input[blockBytes:], 0
	}
	return compress(chaining, input, flags|start|chunkEnd|root)
}

func compress(chaining [8]uint32, input []byte, flags uint32) [8]uint32 {
	var block [blockBytes]byte
	copy(block[:], input)
	var m [16]uint32
	for i := range m {
		m[i] = binary.LittleEndian.Uint32(block[4*i:])
	}
	// The counter of chunks is 0: there is one.
	v := [16]uint32{8: iv[0], iv[1], iv[2], iv[3], 0, 0, uint32(len(input)), flags}
	copy(v[:8], chaining[:])
	for turn := range 7 {
		if turn > 0 {
			m = permuted(m)
		}
		for i := range 4 {
			mix(&v, i, 4+i, 8+i, 12+i, m[2*i], m[2*i+1])
		}
		for i := range 4 {
			mix(&v, i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4, m[8+2*i], m[9+2*i])
		}
	}
	var out [8]uint32
	for i := range out {
		out[i] = v[i] ^ v[i+8]
	}
	return out
}

func permuted(m [16]uint32) (out [16]uint32) {
	for i, from := range permutation {
		out[i] = m[from]
	}
	return out
}

func mix(v *[16]uint32, a, b, c, d int, x, y uint32) {
	v[a] += v[b] + x
	v[d] = bits.RotateLeft32(v[d]^v[a], -16)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -12)
	v[a] += v[b] + y
	v[d] = bits.RotateLeft32(v[d]^v[a], -8)
	v[c] += v[d]
	v[b] = bits.RotateLeft32(v[b]^v[c], -7)
}
