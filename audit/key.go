package audit

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// KeyName is the file in the data folder that holds the key.
const KeyName = "audit_key"

const keyBytes = 32

// Key returns the key of a data folder's audit log, which is made when there is none.
func Key(dataDir string) ([]byte, error) {
	path := filepath.Join(dataDir, KeyName)
	return parseKey(path)(secretfile.Ensure(path, func() ([]byte, error) {
		raw := make([]byte, keyBytes)
		_, _ = rand.Read(raw) // never fails
		return []byte(hex.EncodeToString(raw) + "\n"), nil
	}))
}

// ReadKey is Key for whoever verifies: a log whose key is gone cannot be, and the error is NotFound.
func ReadKey(dataDir string) ([]byte, error) {
	path := filepath.Join(dataDir, KeyName)
	text, err := secretfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no key %s", path).
			WithHint("Name the data folder of the server that wrote the log with --data-dir; without its key no log can be verified.")
	}
	return parseKey(path)(text, err)
}

func parseKey(path string) func([]byte, error) ([]byte, error) {
	return func(text []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		key, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil || len(key) != keyBytes {
			return nil, fault.New(fault.Unavailable, "%s is damaged", path).
				WithHint("Put it back from a backup. With a new key, nothing written so far can be verified: move the log away with it.")
		}
		return key, nil
	}
}
