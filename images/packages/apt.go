package packages

import (
	"regexp"
	"strings"
)

// The grammar of Debian's names and versions (Debian Policy, 5.6.1 and 5.6.12), without what apt-get reads more into: a "-" at the
// end would remove the package, and "/" names a release or a file.
var aptPackage = regexp.MustCompile(`^([a-z0-9][a-z0-9+.-]{0,126}[a-z0-9+.])(?:=((?:[0-9]+:)?[0-9][A-Za-z0-9.+~-]{0,126}))?$`)

const aptExample = `"graphviz" or "graphviz=2.42.4-3"`

func parseApt(text string) (Package, error) {
	m := aptPackage.FindStringSubmatch(text)
	if m == nil || strings.HasSuffix(text, ".deb") {
		return Package{}, wrong(Apt, text, aptExample)
	}
	return Package{Name: m[1], Argument: text}, nil
}
