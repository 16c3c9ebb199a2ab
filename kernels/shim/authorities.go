//go:build linux

package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
)

// systemAuthorities is where distributions keep whom they trust, the first that is there.
var systemAuthorities = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// maxAuthorities bounds what is read of it, in bytes; it is a quarter of a megabyte in Debian.
const maxAuthorities = 512 << 10

// authoritiesFile is where the kernel finds whom to trust.
func authoritiesFile(c stream.Config) string { return filepath.Join(c.RunDir, "authorities.pem") }

// writeAuthorities makes a file of those whom the image trusts and those whom the operator does. Most programs take one file for
// all that they trust.
func writeAuthorities(c stream.Config) error {
	if c.Egress == nil || c.Egress.Authorities == "" {
		return nil
	}
	if err := os.MkdirAll(c.RunDir, 0o700); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(authoritiesFile(c), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("authorities: %w", err)
	}
	_, err = f.WriteString(imageAuthorities() + "\n" + c.Egress.Authorities)
	return errors.Join(err, f.Close())
}

func imageAuthorities() string {
	for _, path := range systemAuthorities {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
		f.Close()
		if err == nil && len(text) < maxAuthorities {
			return string(text)
		}
	}
	return ""
}

// authoritiesEnv is what tells programs of the file: OpenSSL, requests, curl, pip, git, Node.js.
func authoritiesEnv(c stream.Config) map[string]string {
	if c.Egress.Authorities == "" {
		return nil
	}
	env := map[string]string{}
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"} {
		env[name] = authoritiesFile(c)
	}
	return env
}
