package mcpserver

import (
	"testing"

	"cellblock/kernels"
)

func TestHintWhereThereIsNoRoom(t *testing.T) {
	all := bounds{memory: 1 << 30, workspace: 10 << 30, tmp: 256 << 20, file: 4 << 30}
	for _, tt := range []struct {
		within      bounds
		value, want string
	}{
		{all, "[Errno 122] Disk quota exceeded: 'data'", "The workspace may hold 10 GiB: delete files that are not needed."},
		{all, "[Errno 28] No space left on device", "The workspace may hold 10 GiB, /tmp may hold 256 MiB: delete files that are not needed."},
		{bounds{tmp: 1 << 20}, "[Errno 28] No space left on device", "/tmp may hold 1 MiB: delete files that are not needed."},
		{bounds{}, "[Errno 28] No space left on device", "The disk is full: delete files that are not needed."},
		{all, "[Errno 27] File too large", "One file may have 4 GiB at most: write several."},
		{bounds{}, "[Errno 122] Disk quota exceeded", ""},
		{all, "[Errno 13] Permission denied", ""},
	} {
		if got := errorHint(kernels.ExecError{Name: "OSError", Value: tt.value}, tt.within); got != tt.want {
			t.Errorf("%s: %q", tt.value, got)
		}
	}
}
