package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is the server's, where it runs on this host and may be looked at; 0 if not.
type process int

// processAt finds who listens at an URL's port, by /proc.
func processAt(endpoint string) process {
	u, err := url.Parse(endpoint)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return 0
	}
	inode := listener(port)
	if inode == "" {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			return process(pid)
		}
	}
	return 0
}

// listener returns the inode of the socket that listens at a port; empty if there is none.
func listener(port int) string {
	const listening = "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return f[9]
			}
		}
	}
	return ""
}

// memory is what the process has in memory, in MB.
func (p process) memory() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	_, rest, ok := strings.Cut(string(text), "VmRSS:")
	if f := strings.Fields(rest); ok && len(f) > 0 {
		kb, _ := strconv.Atoi(f[0])
		return strconv.Itoa(kb / 1000)
	}
	return "?"
}

// descriptors is how many the process has open.
func (p process) descriptors() string {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p))
	if err != nil || p == 0 {
		return "?"
	}
	return strconv.Itoa(len(open))
}
