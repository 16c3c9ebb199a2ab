package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cellblock/internal/fault"
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

// secret returns the random bytes kept in a file of the data folder, made on first use. Several processes may ask at once.
func secret(dir, name string, size int) ([]byte, error) {
	path := filepath.Join(dir, name)
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
			if err != nil || len(raw) != size {
				return nil, fault.New(fault.Unavailable, "%s is damaged", path).WithHint("Remove it; a new one is made.")
			}
			return raw, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fault.New(fault.Unavailable, "%w", err).WithHint("Choose a folder that this user may read and write: --data-dir.")
		}
		if err := createSecret(path, size); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fault.New(fault.Unavailable, "%w", err).WithHint("Choose a folder that this user may write: --data-dir.")
		}
	}
}

// createSecret writes the file whole or not at all, and fails with fs.ErrExist if another process was first.
func createSecret(path string, size int) error {
	raw := make([]byte, size)
	_, _ = rand.Read(raw) // never fails
	temp, err := os.CreateTemp(filepath.Dir(path), ".secret-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(hex.EncodeToString(raw) + "\n")
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Link(temp.Name(), path)
}

// installationID tells this installation's kernels from others' on the same engine. It lives as long as the data folder.
func installationID(dataDir string) (string, error) {
	raw, err := secret(dataDir, "installation", 8)
	return hex.EncodeToString(raw), err
}
