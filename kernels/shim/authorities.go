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
const maxAuthorities = 4 << 20

// authoritiesFile is where the kernel finds whom to trust.
func authoritiesFile(c stream.Config) string { return filepath.Join(c.RunDir, "authorities.pem") }

// writeAuthorities makes a file of those whom the image trusts and those whom the operator does. Most programs take one file for
// all that they trust.
func writeAuthorities(c stream.Config) error {
	if c.Egress == nil || c.Egress.Authorities == "" {
		return nil
	}
	trusted, err := imageAuthorities(systemAuthorities)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.RunDir, 0o700); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(authoritiesFile(c), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("authorities: %w", err)
	}
	_, err = f.WriteString(trusted + "\n" + c.Egress.Authorities)
	return errors.Join(err, f.Close())
}

// imageAuthorities is the text of the first file that is there, and none where there is none. One that is too large is an error, and not
// left out: programs would trust nobody whom they trusted before.
func imageAuthorities(paths []string) (string, error) {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxAuthorities+1))
		f.Close()
		switch {
		case err != nil:
			continue
		case len(text) > maxAuthorities:
			return "", fmt.Errorf("authorities: %s of the kernel's image has more than %d MB of certificates: make it smaller, or leave network.ca_file out", path, maxAuthorities>>20)
		}
		return string(text), nil
	}
	return "", nil
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
