package auth

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"cellblock/internal/fault"
)

// maxKeyFile is far above any key or chain of certificates, in bytes.
const maxKeyFile = 256 << 10

// LoadPublicKey reads a public key from a PEM file: PKIX ("PUBLIC KEY"), PKCS #1 ("RSA PUBLIC KEY"), or an X.509
// certificate, of which only the key is used (neither its dates nor its chain are checked; of several certificates the
// first counts). Its error is Invalid, with what to do about it.
func LoadPublicKey(path string) (crypto.PublicKey, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	key, err := ParsePublicKey(data)
	if err != nil {
		hint := fault.Hint(err)
		return nil, fault.New(fault.Invalid, "%s: %w", path, err).WithHint("%s", hint)
	}
	return key, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, "cannot read the key file: %w", err).WithHint("%s", openHint(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fault.New(fault.Invalid, "cannot read the key file: %w", err).WithHint("Name a PEM file.")
	}
	if len(data) > maxKeyFile {
		return nil, fault.New(fault.Invalid, "%s is larger than any key", path).WithHint("Name a PEM file with one key.")
	}
	return data, nil
}

func openHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "Check the path; in a container the file must be mounted."
	case errors.Is(err, fs.ErrPermission):
		return "Let the server's user read the file."
	}
	return "Name a PEM file."
}

// ParsePublicKey reads what LoadPublicKey describes.
func ParsePublicKey(data []byte) (crypto.PublicKey, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, notPEM(data)
	}
	key, err := decodeBlock(block)
	if err != nil {
		return nil, err
	}
	if next, _ := pem.Decode(rest); next != nil && (next.Type != "CERTIFICATE" || block.Type != "CERTIFICATE") {
		return nil, fault.New(fault.Invalid, "the file holds more than one key").
			WithHint("Leave only the key that tokens are verified with.")
	}
	return key, checkKey(key)
}

func decodeBlock(block *pem.Block) (crypto.PublicKey, error) {
	var key crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			key = certificate.PublicKey
		}
	default:
		return nil, wrongBlock(block.Type)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the PEM block %q does not hold a key: %w", block.Type, err).
			WithHint("Write it anew: openssl pkey -in private.pem -pubout.")
	}
	return key, nil
}

func wrongBlock(name string) error {
	if strings.HasSuffix(name, "PRIVATE KEY") {
		return fault.New(fault.Invalid, "the file holds a private key").
			WithHint("Give the server only the public half: openssl pkey -in private.pem -pubout.")
	}
	return fault.New(fault.Invalid, "the PEM block %.40q is no public key", name).
		WithHint("Use a block PUBLIC KEY, RSA PUBLIC KEY or CERTIFICATE.")
}

func notPEM(data []byte) error {
	err := fault.New(fault.Invalid, "the file is not PEM")
	switch start := strings.TrimSpace(string(data[:min(len(data), 64)])); {
	case strings.HasPrefix(start, "{"):
		return err.WithHint("It looks like a JSON Web Key; convert it to PEM.")
	case strings.HasPrefix(start, "ssh-") || strings.HasPrefix(start, "ecdsa-"):
		return err.WithHint("It is an SSH key; convert it: ssh-keygen -e -m PKCS8 -f key.pub.")
	case strings.HasPrefix(start, "\x30\x82"), strings.HasPrefix(start, "\x30\x59"), strings.HasPrefix(start, "\x30\x2a"):
		return err.WithHint("It looks like DER; convert it: openssl pkey -pubin -inform DER -in key.der.")
	}
	return err.WithHint("It must begin with -----BEGIN PUBLIC KEY-----.")
}
