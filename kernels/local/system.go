package local

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// roots are the folders that a system's programs live in. On a merged /usr all but /usr are links into it.
var roots = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// etc lists what programs, kernels and scientific libraries read of /etc. Nothing in it is secret or about this host.
var etc = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "locale.alias", "inputrc",
	"fonts", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates/extracted",
	"crypto-policies", "mime.types", "magic", "magic.mime", "protocols", "services", "terminfo", "xml", "sgml", "perl",
	"matplotlibrc", "ipython", "jupyter", "R", "mono", "ImageMagick-6", "ImageMagick-7", "java-11-openjdk", "java-17-openjdk",
	"java-21-openjdk", "texmf", "debian_version", "os-release",
}

// etcPatterns are those whose names carry a version.
var etcPatterns = []string{"python3*"}

// system is the part of a host that every sandbox sees, read-only.
type system struct {
	binds []bind
	links []link
}

// readSystem looks at a host's root folder.
func readSystem(root fs.FS) system {
	var s system
	for _, dir := range roots {
		info, err := fs.Lstat(root, dir)
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0:
			if text, err := fs.ReadLink(root, dir); err == nil {
				s.links = append(s.links, link{text, "/" + dir})
			}
		case info.IsDir():
			s.binds = append(s.binds, bind{source: "/" + dir, target: "/" + dir})
		}
	}
	names := slices.Clone(etc)
	for _, pattern := range etcPatterns {
		found, _ := fs.Glob(root, "etc/"+pattern)
		for _, path := range found {
			names = append(names, strings.TrimPrefix(path, "etc/"))
		}
	}
	for _, n := range names {
		s.binds = append(s.binds, bind{source: "/etc/" + n, target: "/etc/" + n, optional: true})
	}
	return s
}

// shows tells whether a sandbox with these further paths sees path, which may go through links.
func (s system) shows(path string, further []string) bool {
	for _, l := range s.links {
		if within(path, l.path) {
			return true
		}
	}
	for _, b := range s.binds {
		if within(path, b.target) {
			return true
		}
	}
	return slices.ContainsFunc(further, func(folder string) bool { return within(path, folder) })
}

// accounts are the files of /etc that are made up, so that a user without an entry has a name and nothing of the host's
// accounts is seen.
func accounts(uid, gid int) map[string]string {
	return map[string]string{
		"/etc/passwd": fmt.Sprintf("root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%d:%d:kernel:%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			account, uid, gid, homePath),
		"/etc/group":         fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", account, gid),
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"/etc/hosts":         "127.0.0.1 localhost " + hostname + "\n::1 localhost\n",
		"/etc/hostname":      hostname + "\n",
	}
}

// searchPath is the kernels' PATH: the read-only paths' own programs first, then the system's.
func searchPath(readOnly []string) string {
	var dirs []string
	for _, path := range readOnly {
		dirs = append(dirs, filepath.Join(path, "bin"))
	}
	dirs = append(dirs, "/usr/local/bin", "/usr/bin", "/bin")
	return strings.Join(dirs, ":")
}

func sortedEnv(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}
