package web

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"cellblock/internal/fault"
)

// settle is how long files must have been left alone before they are read again: certificate and key are replaced one after
// the other.
const settle = 200 * time.Millisecond

// lookEvery is how often files are read again of which nothing was heard: a folder that is replaced as a whole, or by a link that is
// turned above it, tells nobody, and neither do many disks of other machines.
const lookEvery = time.Minute

// Certificates is the server's certificate, as it lies in two files. When these change, the new pair serves new connections;
// one that does not fit together is told of in the log, and the last good one stays.
type Certificates struct {
	cert, key string
	logger    *slog.Logger
	now       atomic.Pointer[tls.Certificate]
	watcher   *fsnotify.Watcher
	every     time.Duration // lookEvery, but in tests
	problem   string        // with the files, when they were read last; of watch only
	ended     chan struct{}
	tried     chan struct{} // takes one, after the files have been read again
}

// LoadCertificates reads a certificate, with its chain behind it, and its key, both PEM. Its error is Invalid for files that
// are no pair, or a key that everybody can read. Close must be called.
func LoadCertificates(cert, key string, logger *slog.Logger) (*Certificates, error) {
	return loadCertificates(cert, key, logger, lookEvery)
}

func loadCertificates(cert, key string, logger *slog.Logger, every time.Duration) (*Certificates, error) {
	c := &Certificates{cert: cert, key: key, logger: logger, every: every, ended: make(chan struct{}), tried: make(chan struct{}, 1)}
	if _, err := c.read(); err != nil {
		return nil, err // before anybody hears that the folder of a file that is not there cannot be watched
	}
	if err := c.beginWatch(); err != nil {
		return nil, err
	}
	pair, err := c.read()
	if err != nil { // what has changed until now, nobody would have told of
		return nil, errors.Join(err, c.watcher.Close())
	}
	c.now.Store(pair)
	go c.watch()
	return c, nil
}

// beginWatch has changes of the files told of.
func (c *Certificates) beginWatch() (err error) {
	if c.watcher, err = fsnotify.NewWatcher(); err != nil {
		return fault.New(fault.Unavailable, "cannot watch the certificate: %w", err).WithHint("Raise fs.inotify.max_user_instances.")
	}
	for _, file := range []string{c.cert, c.key} { // its folder: files are replaced, and links turned
		if err := c.watcher.Add(filepath.Dir(file)); err != nil {
			return errors.Join(fault.New(fault.Unavailable, "cannot watch %s: %w", filepath.Dir(file), err), c.watcher.Close())
		}
	}
	return nil
}

// Close ends the watch. Connections that there are go on.
func (c *Certificates) Close() error {
	err := c.watcher.Close()
	<-c.ended
	return err
}

// config is what a listener needs to serve with the certificate.
func (c *Certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}

func (c *Certificates) read() (*tls.Certificate, error) {
	info, err := os.Stat(c.key)
	if err == nil && info.Mode().Perm()&0o007 != 0 {
		return nil, fault.New(fault.Invalid, "everybody can read the key %s (mode %04o)", c.key, info.Mode().Perm()).
			WithHint("Type chmod o= %s; if somebody may have read it, get a new one.", c.key)
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the certificate %s with the key %s cannot be used: %w", c.cert, c.key, err).
			WithHint("Name PEM files that belong together with --tls-cert and --tls-key.")
	}
	return &pair, nil
}

// watch reads the files again when they have changed, and now and then, until Close.
func (c *Certificates) watch() {
	defer close(c.ended)
	timer := time.NewTimer(c.every)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-c.watcher.Events:
			if !ok {
				return
			}
			timer.Reset(settle)
		case err, ok := <-c.watcher.Errors: // events may have been missed
			if !ok {
				return
			}
			c.logger.Warn("the certificate is watched with difficulty", "error", err)
			timer.Reset(settle)
		case <-timer.C:
			c.renew()
			timer.Reset(c.every)
			select {
			case c.tried <- struct{}{}:
			default:
			}
		}
	}
}

func (c *Certificates) renew() {
	pair, err := c.read()
	before := c.problem
	c.problem = ""
	switch {
	case err != nil:
		if c.problem = err.Error(); c.problem != before {
			c.logger.Error("the certificate has changed and cannot be used; the last one stays", "error", err)
		}
	case !slices.EqualFunc(pair.Certificate, c.now.Load().Certificate, bytes.Equal): // the chain too
		c.now.Store(pair)
		c.logger.Info("new connections get the new certificate", "until", pair.Leaf.NotAfter)
	}
}
