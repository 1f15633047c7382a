package deedboxtest

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"

	"deedbox.local/deedbox"
)

const (
	tenant = "test"

	runKeyContext = "deedbox 2026 run key"
	subkeyContext = "deedbox 2026 subkey"
	maxNameBytes  = 256
)

var isRunID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// keys are derived as the host derives them, so that a test can state them as text. Nothing here may be random: an unstable
// key in a test hides the bug that the test is for.
type keys struct {
	run [32]byte
}

func keysOf(runID string) keys {
	return keys{derive(runKeyContext, []byte(tenant), []byte(runID))}
}

func (k keys) subkey(name string) (string, error) {
	if name == "" || len(name) > maxNameBytes {
		return "", deedbox.Refusal(deedbox.CodeInvalidName, "")
	}
	return asText(derive(subkeyContext, k.run[:], []byte(name))), nil
}

func derive(context string, fields ...[]byte) [32]byte {
	var material []byte
	for _, field := range fields {
		material = binary.LittleEndian.AppendUint32(material, uint32(len(field)))
		material = append(material, field...)
	}
	return deriveKey(context, material)
}

// asText is a UUID of version 8.
func asText(key [32]byte) string {
	key[6] = key[6]&0x0f | 0x80
	key[8] = key[8]&0x3f | 0x80
	digits := hex.EncodeToString(key[:16])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}
