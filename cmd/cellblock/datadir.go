package main

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// makeDirs makes the data folder and the run folder, for the server's user alone but for passing through: kernels run as
// another user and must reach their workspace, whose name they are told.
func makeDirs(cfg *Config) error {
	for _, dir := range []string{cfg.DataDir, cfg.RunDir} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fault.New(fault.Unavailable, "%w", err).WithHint("Choose folders that this user may write: --data-dir, --run-dir.")
		}
	}
	return nil
}

// installationBytes is how long an installation's id is.
const installationBytes = 8

// installationID tells this installation's kernels from others' on the same engine. It lives as long as the data folder.
func installationID(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "installation")
	text, err := secretfile.Ensure(path, func() ([]byte, error) {
		raw := make([]byte, installationBytes)
		_, _ = rand.Read(raw) // never fails
		return []byte(hex.EncodeToString(raw) + "\n"), nil
	})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != installationBytes {
		return "", fault.New(fault.Unavailable, "%s is damaged", path).WithHint("Remove it; a new one is made.")
	}
	return id, nil
}
