package egress

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// Mode says in general what a kernel may connect to.
type Mode string

// The modes.
const (
	// None is no network at all; so is the empty mode.
	None Mode = "none"
	// Hosts is what Policy.Hosts names.
	Hosts Mode = "hosts"
	// Internet is every public address.
	Internet Mode = "internet"
)

var modes = []string{string(None), string(Hosts), string(Internet)}

// Policy is what a profile says of its kernels' network, as an operator writes it. The zero value is none.
type Policy struct {
	Mode Mode `koanf:"mode"`
	// Hosts are what may be connected to in the mode Hosts: "pypi.org", "*.example.com" for all names below it (not itself),
	// an address; each may end with a port, as "db.example.com:5432", and stands for all ports without.
	Hosts []string `koanf:"hosts"`
	// Private are addresses that may be reached although they are not public: "10.1.2.3", "10.0.0.0/8", each with a port
	// where only that is meant: "10.1.2.3:5432", "[fd00::1]:5432". In the mode Hosts the name must be among Hosts, too.
	Private []string `koanf:"private"`
}

// Open tells whether the policy lets a kernel connect to anything.
func (p Policy) Open() bool { return p.Mode == Hosts || p.Mode == Internet }

// Compile checks the policy. The error is Invalid and names what is wrong.
func (p Policy) Compile() (*Rules, error) {
	r := &Rules{mode: p.Mode}
	switch p.Mode {
	case None, "":
		r.mode = None
	case Hosts, Internet:
	default:
		return nil, badMode(string(p.Mode))
	}
	switch named := len(p.Hosts) > 0; {
	case p.Mode == Hosts && !named:
		return nil, fault.New(fault.Invalid, "network: the mode hosts needs at least one host").
			WithHint("Name those that may be reached, as hosts: [pypi.org, \"*.example.com\"], or write mode: none.")
	case p.Mode != Hosts && named:
		return nil, fault.New(fault.Invalid, "network: hosts are named in the mode hosts alone, and the mode is %s", r.mode).
			WithHint("Write mode: hosts, or leave hosts out.")
	}
	for _, text := range p.Private {
		e, err := parseException(text)
		if err != nil {
			return nil, err
		}
		r.private = append(r.private, e)
	}
	for _, text := range p.Hosts {
		h, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		if addr, err := netip.ParseAddr(h.name); err == nil && r.CheckAddress(netip.AddrPortFrom(addr, h.port)) != nil && h.port != 0 {
			return nil, fault.New(fault.Invalid, "network: the host %s is not a public address, and private does not name it", text).
				WithHint("Name it under private, too: [%q].", text)
		}
		r.hosts = append(r.hosts, h)
	}
	return r, nil
}

func badMode(mode string) error {
	err := fault.New(fault.Invalid, "network: the mode %q is not one of %s", mode, strings.Join(modes, ", "))
	if meant := nearest.Of(mode, modes); meant != "" {
		err = err.WithHint("Did you mean %s?", meant)
	}
	return err
}

// pattern is a host that may be connected to.
type pattern struct {
	name  string // normal, without "*."
	below bool   // the names below it, and not itself
	port  uint16 // 0: all
}

func (p pattern) fits(host string, port uint16) bool {
	if p.port != 0 && p.port != port {
		return false
	}
	if p.below {
		return strings.HasSuffix(host, "."+p.name)
	}
	return host == p.name
}

// String is the pattern as an operator writes it.
func (p pattern) String() string {
	text := p.name
	if p.below {
		text = "*." + text
	}
	if p.port != 0 {
		text = net.JoinHostPort(text, strconv.Itoa(int(p.port)))
	}
	return text
}

func parsePattern(text string) (pattern, error) {
	host, port, err := splitPort(text)
	if err != nil {
		return pattern{}, err
	}
	rest, below := strings.CutPrefix(host, "*.")
	name, err := normalHost(rest)
	_, addrErr := netip.ParseAddr(name)
	if err != nil || below && addrErr == nil || below && !strings.Contains(name, ".") {
		return pattern{}, fault.New(fault.Invalid, "network: %q is not a host", text).
			WithHint("Write pypi.org, *.example.com, db.example.com:5432 or an address. All of the internet is mode: internet.")
	}
	return pattern{name, below, port}, nil
}

// exception is addresses that may be reached although they are not public.
type exception struct {
	net  netip.Prefix
	port uint16 // 0: all
}

func parseException(text string) (exception, error) {
	bad := fault.New(fault.Invalid, "network: %q under private is not an address or a network", text).
		WithHint("Write 10.1.2.3, 10.0.0.0/8, 10.1.2.3:5432 or [fd00::1]:5432.")
	host, port, err := splitPort(text)
	if err != nil {
		return exception{}, bad
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return exception{netip.PrefixFrom(addr, addr.BitLen()), port}, nil
	}
	prefix, err := netip.ParsePrefix(host)
	if err != nil || prefix.Addr().Is4In6() || prefix.Masked() != prefix {
		return exception{}, bad
	}
	return exception{prefix, port}, nil
}

// splitPort takes a port off the end of a text. An IPv6 address needs brackets to have one.
func splitPort(text string) (host string, port uint16, err error) {
	if _, rest, isURL := strings.Cut(text, "://"); isURL {
		name, _, _ := strings.Cut(rest, "/")
		return "", 0, fault.New(fault.Invalid, "network: %q is an address of the web", text).WithHint("Write the name alone: %s", name)
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") || strings.HasSuffix(text, "]") {
		return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), 0, nil
	}
	n, err := strconv.ParseUint(text[at+1:], 10, 16)
	if err != nil || n == 0 {
		return "", 0, fault.New(fault.Invalid, "network: %q ends with no port between 1 and 65535", text)
	}
	return strings.TrimSuffix(strings.TrimPrefix(text[:at], "["), "]"), uint16(n), nil
}

// maxHost is how long a name may be (RFC 1035, 2.3.4), in bytes.
const maxHost = 253

// normalHost is a host as it is compared: an address in its shortest form, a name in lower case, in ASCII, without the dot of
// the root. The error says that it is neither.
func normalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", errHost
		}
		return addr.Unmap().String(), nil
	}
	if len(host) > maxHost+1 {
		return "", errHost
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil { // names in use break that standard's rules: with an underscore, for one
		name = strings.ToLower(strings.TrimSuffix(host, "."))
	}
	if name == "" || len(name) > maxHost || strings.HasPrefix(name, ".") || strings.Contains(name, "..") || strings.IndexFunc(name, foreign) >= 0 || endsInNumber(name) {
		return "", errHost
	}
	return name, nil
}

// endsInNumber tells whether a name's last part is a number. No domain's is; but programs that resolve names, an upstream proxy
// for one, take it for an address: 2130706433, 127.1 and 0x7f000001 all are 127.0.0.1 (WHATWG URL, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

var errHost = fault.New(fault.Invalid, "this is neither a name nor an address")

// foreign tells what no name of a host has.
func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}
