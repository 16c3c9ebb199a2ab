package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
)

// What clients and tokens are told is an address that they can use.
func TestPublicBase(t *testing.T) {
	named := func() (string, error) { return "cells", nil }
	nameless := func() (string, error) { return "", errors.New("no name") }
	for _, tt := range []struct {
		name, public, listening string
		hostname                func() (string, error)
		want                    string
		warns                   bool
	}{
		{"loopback", "", "127.0.0.1:8787", named, "http://127.0.0.1:8787", false},
		{"one address", "", "192.0.2.7:80", named, "http://192.0.2.7:80", false},
		{"IPv6", "", "[2001:db8::1]:80", named, "http://[2001:db8::1]:80", false},
		{"all addresses", "", "0.0.0.0:8787", named, "http://cells:8787", true},
		{"all of IPv6", "", "[::]:8787", named, "http://cells:8787", true},
		{"a machine without a name", "", "[::]:8787", nameless, "http://localhost:8787", true},
		{"behind a proxy", "https://cells.example.com", "[::]:8787", named, "https://cells.example.com", false},
	} {
		at, err := net.ResolveTCPAddr("tcp", tt.listening)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		if got := publicBase(&Config{PublicURL: tt.public}, at, tt.hostname, slog.New(slog.NewTextHandler(&log, nil))); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
		if warned := strings.Contains(log.String(), tt.want) && strings.Contains(log.String(), "public_url"); warned != tt.warns {
			t.Errorf("%s: the log says %q", tt.name, log.String())
		}
	}
}

// Who starts a server a second time is told of the first, and of another program that has the address, that one has.
func TestAddressThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := &Config{Addr: l.Addr().String(), DataDir: t.TempDir()}
	_, taken := net.Listen("tcp", cfg.Addr)
	if err := cannotListen(cfg, taken); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Text(err), "--addr") || strings.Contains(err.Error(), "runs already") {
		t.Errorf("%s", fault.Text(err))
	}
	s, err := takeSlot(cfg.DataDir, serveSlot)
	if err == nil {
		err = leaveAddress(cfg.DataDir, s.name, localURL("http", l.Addr()))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cannotListen(cfg, taken); !strings.Contains(err.Error(), "runs already at http://"+cfg.Addr) || fault.Hint(err) == "" {
		t.Errorf("%s", fault.Text(err))
	}
	cfg.Addr = "127.0.0.1:1"
	if err := cannotListen(cfg, taken); strings.Contains(err.Error(), "runs already") {
		t.Errorf("another address: %s", fault.Text(err))
	}
	if err := s.release(); err != nil {
		t.Error(err)
	}
}

// Who reads that the server is ready reads next that it answers nobody yet, where that is so.
func TestNoKeysAreWarnedOf(t *testing.T) {
	for serving, want := range map[bool]string{true: "", false: "every call is refused until the issuer's keys have been fetched"} {
		var said bytes.Buffer
		health := func() (bool, error) { return serving, fault.New(fault.Unavailable, "nobody answers").WithHint("Look.") }
		warnOfNoKeys(auth.Authority{Health: health}, slog.New(slog.NewTextHandler(&said, nil)))
		if got := said.String(); !strings.Contains(got, want) || strings.Contains(got, "hint=Look.") == serving {
			t.Errorf("serving %v: %s", serving, got)
		}
	}
}
