package docker

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// program is the file of a Linux program as far as its loader reads it before it loads anything.
func program(t *testing.T, machine elf.Machine, parts ...elf.ProgType) []byte {
	t.Helper()
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phoff: 64, Phentsize: 56, Phnum: uint16(len(parts)), Shentsize: 64,
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, head); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(part)}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// A shim that containers could not run is found before one starts, and the hint is the command that builds the right one.
func TestShimThatContainersCannotRun(t *testing.T) {
	for name, tt := range map[string]struct {
		content []byte
		engine  string // as it names its processor
		want    []string
	}{
		"nothing there":         {nil, "x86_64", []string{"the shim is missing", "GOARCH=amd64 "}},
		"a script":              {[]byte("#!/bin/sh\n"), "x86_64", []string{"not a Linux program", "GOARCH=amd64 ", "shim-linux-amd64 "}},
		"half of a program":     {program(t, elf.EM_X86_64)[:40], "amd64", []string{"not a Linux program", "GOARCH=amd64 "}},
		"another processor":     {program(t, elf.EM_X86_64), "aarch64", []string{"a program for amd64, and the engine runs linux/arm64", "GOARCH=arm64 ", "shim-linux-arm64 "}},
		"one that we know not":  {program(t, elf.EM_MIPS), "x86_64", []string{"a program for EM_MIPS,"}},
		"both unheard of":       {program(t, elf.EM_MIPS), "", []string{"a program for EM_MIPS,"}},
		"a 32-bit engine":       {program(t, elf.EM_AARCH64), "armv7l", []string{"GOARCH=arm "}},
		"one that needs others": {program(t, elf.EM_X86_64, elf.PT_LOAD, elf.PT_INTERP), "x86_64", []string{"not a static program", "CGO_ENABLED=0"}},
	} {
		path := filepath.Join(t.TempDir(), "shim")
		if tt.content != nil {
			writeFile(t, path, tt.content)
		}
		_, err := findShim(path, goarch(tt.engine))
		for _, want := range tt.want {
			if err == nil || fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Text(err)+" ", want) {
				t.Errorf("%s: no %q in %v, %s", name, want, err, fault.Hint(err))
			}
		}
	}
}

// One server may hold shims for several processors. Volumes are named by a shim's digest: another content is another.
func TestShimForTheEnginesProcessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shim")
	writeFile(t, path, program(t, elf.EM_X86_64))
	writeFile(t, path+"-linux-arm64", program(t, elf.EM_AARCH64))
	own, err := findShim(path, "amd64")
	if err != nil || own.path != path || own.size != 64 {
		t.Errorf("%+v, %v", own, err)
	}
	other, err := findShim(path, "arm64")
	if err != nil || other.path != path+"-linux-arm64" || other.digest == own.digest {
		t.Errorf("%+v, %v", other, err)
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
