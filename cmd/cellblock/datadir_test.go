package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestSecretIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	results := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			raw, err := secret(dir, "key", 32)
			if err != nil {
				t.Error(err)
			}
			results[i] = raw
		})
	}
	wg.Wait()
	for _, r := range results {
		if len(r) != 32 || !bytes.Equal(r, results[0]) {
			t.Fatalf("different secrets: %x, %x", r, results[0])
		}
	}
	info, err := os.Stat(filepath.Join(dir, "key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".secret-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDamagedSecretIsSaid(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secret(dir, "key", 32); err == nil {
		t.Error("no error")
	}
}
